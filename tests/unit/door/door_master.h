// A master whose calls are made as bytes, without a protocol.
#ifndef WEIR_TESTS_UNIT_DOOR_DOOR_MASTER_H_
#define WEIR_TESTS_UNIT_DOOR_DOOR_MASTER_H_

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/door/master.h"
#include "core/runtime/cancellation.h"
#include "core/tensor/tensor_proto.h"
#include "tests/support/local_cluster.h"
#include "tests/support/text_graph.h"
#include "weir/proto/master.pb.h"
#include "weir/proto/session_config.pb.h"

namespace weir::door {

using cluster::TaskName;
using testing::ConstText;
using testing::NodeText;
using testing::TypedText;

inline const TaskName kLocal{"local", 0};
inline constexpr std::chrono::seconds kMostWait{60};
inline constexpr char kFrom[] = "From /job:local/replica:0/task:0:\n";

inline std::string Serialized(const google::protobuf::MessageLite& message) { return message.SerializeAsString(); }

/// A placeholder x, 2 * x, and a variable that starts with 3.
inline std::string Graph() {
  return testing::PlaceholderText("x", "DT_FLOAT", {}) + ConstText("two", "DT_FLOAT", {}, "float_val: 2") +
         TypedText("y", "Mul", {"x", "two"}) +
         NodeText("v", "VariableV2", {}, {{"dtype", "type: DT_FLOAT"}, {"shape", "shape { }"}}) +
         ConstText("three", "DT_FLOAT", {}, "float_val: 3") + TypedText("init", "Assign", {"v", "three"}) +
         TypedText("more", "AssignAdd", {"v", "two"}) + TypedText("read", "Identity", {"v"});
}
/// A queue of one scalar, and its ops.
inline std::string Queue() {
  return NodeText("q", "FIFOQueueV2", {}, {{"component_types", "list { type: DT_FLOAT }"}, {"capacity", "i: 4"}}) +
         NodeText("take", "QueueDequeueV2", {"q"}, {{"component_types", "list { type: DT_FLOAT }"}}) +
         NodeText("put", "QueueEnqueueV2", {"q", "two"}, {{"Tcomponents", "list { type: DT_FLOAT }"}}) +
         NodeText("size", "QueueSizeV2", {"q"});
}

class DoorMaster : public ::testing::Test {
 protected:
  void SetUp() override { Start(MasterOptions{.task = kLocal}); }
  void Start(const MasterOptions& options) {
    master_ = std::make_unique<Master>(testing::RuntimeOf(options.task), options);
  }

  Result<std::string> Call(const std::string& method, const google::protobuf::MessageLite& request) {
    return master_->Answer({.method = method, .request = Serialized(request)});
  }
  template <class Response>
  Response Get(const std::string& method, const google::protobuf::MessageLite& request) {
    const Result<std::string> reply = Call(method, request);
    EXPECT_TRUE(reply.ok()) << method << ": " << reply.status().ToString();
    Response response;
    EXPECT_TRUE(response.ParseFromString(reply.ok() ? *reply : ""));
    return response;
  }
  void ExpectError(const std::string& method, const google::protobuf::MessageLite& request, Code code,
                   const std::string& text) {
    const Result<std::string> reply = Call(method, request);
    EXPECT_EQ(reply.status().code(), code) << method;
    EXPECT_EQ(reply.status().message(), text) << method;
  }

  std::string Create(const std::string& graph, const tf::ConfigProto& config = {}) {
    tf::CreateSessionRequest request;
    request.set_graph_def(graph);
    request.set_config(Serialized(config));
    return Get<tf::CreateSessionResponse>("CreateSession", request).session_handle();
  }
  static tf::RunStepRequest Step(const std::string& handle, const std::vector<std::string>& fetches,
                                 const std::vector<std::string>& targets = {}) {
    tf::RunStepRequest request;
    request.set_session_handle(handle);
    for (const std::string& fetch : fetches) request.add_fetch(fetch);
    for (const std::string& target : targets) request.add_target(target);
    request.set_store_errors_in_response_body(true);
    return request;
  }
  static std::string Bytes(float value) {
    const Result<std::string> bytes = SerializeTensorProto(Tensor::Scalar<float>(value));
    return bytes.ok() ? *bytes : "";
  }
  static void Feed(tf::RunStepRequest& request, const std::string& name, float value) {
    tf::NamedTensor& feed = *request.add_feed();
    feed.set_name(name);
    feed.set_tensor(Bytes(value));
  }
  tf::RunStepResponse Run(const tf::RunStepRequest& request) { return Get<tf::RunStepResponse>("RunStep", request); }
  static float Value(const std::string& bytes) {
    const Result<Tensor> tensor = ParseTensorProto(bytes);
    EXPECT_TRUE(tensor.ok()) << tensor.status().ToString();
    return tensor.ok() && tensor->elements() == 1 ? tensor->as<float>()[0] : -1e9f;
  }
  /// The only value of a step; its error, if it has one, fails the test.
  float One(const tf::RunStepRequest& request) {
    const tf::RunStepResponse response = Run(request);
    EXPECT_EQ(response.status_code(), 0) << response.status_error_message();
    if (response.tensor_size() != 1) return -1e9f;
    EXPECT_EQ(response.tensor(0).name(), request.fetch(0));
    return Value(response.tensor(0).tensor());
  }

  /// A step on another thread.
  std::future<tf::RunStepResponse> Begin(const tf::RunStepRequest& request,
                                         std::shared_ptr<runtime::Cancellation> cancellation = nullptr,
                                         cluster::Clock::time_point deadline = cluster::Clock::time_point::max()) {
    auto promise = std::make_shared<std::promise<tf::RunStepResponse>>();
    master_->Call({.method = "RunStep",
                   .request = Serialized(request),
                   .deadline = deadline,
                   .peer = "h",
                   .cancellation = std::move(cancellation)},
                  cluster::MasterDone([promise](Result<std::string> reply) {
                    tf::RunStepResponse response;
                    if (reply.ok()) response.ParseFromString(*reply);
                    else response.set_status_code(-static_cast<int>(reply.status().code()));
                    promise->set_value(response);
                  }));
    return promise->get_future();
  }
  void WaitForSteps(size_t count) {
    const auto limit = cluster::Clock::now() + kMostWait;
    while (master_->counts().steps != count && cluster::Clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_EQ(master_->counts().steps, count);
  }
  static tf::RunStepResponse Ended(std::future<tf::RunStepResponse> step) {
    if (step.wait_for(kMostWait) == std::future_status::ready) return step.get();
    ADD_FAILURE() << "the step did not end";
    return {};
  }

  std::unique_ptr<Master> master_;
};

}  // namespace weir::door

#endif  // WEIR_TESTS_UNIT_DOOR_DOOR_MASTER_H_
