// Arrays of tensors that a step writes and reads element by element.
#ifndef WEIR_CORE_CLIENT_CONTAINERS_TENSOR_ARRAY_H_
#define WEIR_CORE_CLIENT_CONTAINERS_TENSOR_ARRAY_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/client/ops/operand.h"

namespace weir {

class ColocateWith;

struct TensorArrayOptions {
  bool dynamic_size = false;     // a write behind the end makes the array longer
  bool clear_after_read = true;  // an element can be read once
  std::string tensor_array_name = {};
  bool infer_shape = true;          // all elements are of one shape, which follows from what is written
  PartialShape element_shape = {};  // of each element, as far as it is known
  bool colocate_with_first_write_call = true;
  std::string_view name = "TensorArray";
};

/// An array of `size` tensors of type `dtype`, which lives for one step. Each element is written once. What changes the
/// array gives another TensorArray, to be used from then on: its flow orders what is done. A loop carries flow():
/// `WhileLoop(…, {0, array.flow()})`, and in the body `array.WithFlow(v[1]).Write(v[0], …).flow()`. Methods are those
/// of TensorFlow's Python class, and so are the names of nodes: `TensorArrayWrite/TensorArrayWriteV3`, …
/// Errors of building: InvalidArgument "Inconsistent shapes: saw (2,) but expected ()".
class TensorArray {
 public:
  TensorArray(DType dtype, const Operand& size, const TensorArrayOptions& options = {}, Where where = Where::current());
  /// The array behind a handle.
  TensorArray(DType dtype, const Output& handle, const Output& flow, bool infer_shape = true);

  const Output& handle() const { return handle_; }
  const Output& flow() const { return flow_; }
  DType dtype() const;
  /// What is known so far.
  const PartialShape& element_shape() const;
  /// The same array, after what `flow` comes from.
  TensorArray WithFlow(const Output& flow) const;

  Output Read(const Operand& index, std::string_view name = {}, Where where = Where::current()) const;
  [[nodiscard]] TensorArray Write(const Operand& index, const Operand& value, std::string_view name = {},
                                  Where where = Where::current()) const;
  /// All elements along a new first axis: [size, element…]. Elements that were not written are zeros.
  Output Stack(std::string_view name = {}, Where where = Where::current()) const;
  /// Those at `indices` (int32 [n]): [n, element…].
  Output Gather(const Operand& indices, std::string_view name = {}, Where where = Where::current()) const;
  /// All elements one after the other along their first axis.
  Output Concat(std::string_view name = {}, Where where = Where::current()) const;
  /// Writes the slices of `value` along its first axis to the elements 0, 1, …
  [[nodiscard]] TensorArray Unstack(const Operand& value, std::string_view name = {},
                                    Where where = Where::current()) const;
  /// The same to the elements at `indices` (int32 [n]).
  [[nodiscard]] TensorArray Scatter(const Operand& indices, const Operand& value, std::string_view name = {},
                                    Where where = Where::current()) const;
  /// Pieces of `value` of these lengths ([size]) along its first axis.
  [[nodiscard]] TensorArray Split(const Operand& value, const Operand& lengths, std::string_view name = {},
                                  Where where = Where::current()) const;
  /// int32 scalar.
  Output Size(std::string_view name = {}, Where where = Where::current()) const;
  /// Drops the elements.
  Operation Close(std::string_view name = {}, Where where = Where::current()) const;
  /// The array of gradients that belongs to `source`, which tells several gradients of one array apart.
  TensorArray Grad(std::string_view source, std::string_view name = {}, Where where = Where::current()) const;
  /// The same behind an Identity of the flow.
  TensorArray Identity(Where where = Where::current()) const;

 private:
  struct Shared;
  bool CheckElementShape(const PartialShape& shape, const Where& where) const;
  void Colocate(const Output& value, std::optional<ColocateWith>& beside) const;
  Output Placed(std::string_view op, const std::vector<Operand>& inputs, const Output& value, std::string_view name,
                const Where& where) const;

  std::shared_ptr<Shared> shared_;  // with all arrays of the same handle
  Output handle_;
  Output flow_;
};

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_CONTAINERS_TENSOR_ARRAY_H_
