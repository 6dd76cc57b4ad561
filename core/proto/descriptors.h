// Descriptors of the messages. The first use of text formats or reflection registers them: each start would pay for it,
// and binary messages need none.
#ifndef WEIR_CORE_PROTO_DESCRIPTORS_H_
#define WEIR_CORE_PROTO_DESCRIPTORS_H_

namespace google::protobuf::internal {
struct DescriptorTable;
}

namespace weir::proto {

/// To be called before text formats, descriptors and reflection of a message are used. Protocol Buffers would register
/// a file by its first use, but not while another thread looks for one. Thread-safe; fast after the first call.
void NeedDescriptors();
/// False until NeedDescriptors is called.
bool HasDescriptors();

/// Stands for AddDescriptorsRunner in generated code: notes the file for NeedDescriptors. For objects of static
/// storage.
class LateDescriptors {
 public:
  explicit LateDescriptors(const google::protobuf::internal::DescriptorTable* table);
};

}  // namespace weir::proto

namespace google::protobuf::internal {
using LateDescriptors = weir::proto::LateDescriptors;  // generated code names the class in this namespace
}

#endif  // WEIR_CORE_PROTO_DESCRIPTORS_H_
