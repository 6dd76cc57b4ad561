// Tables that give a value for each key.
#ifndef WEIR_CORE_CLIENT_CONTAINERS_LOOKUP_TABLE_H_
#define WEIR_CORE_CLIENT_CONTAINERS_LOOKUP_TABLE_H_

#include <string>
#include <string_view>

#include "core/client/ops/operand.h"

namespace weir {

struct LookupTableOptions {
  std::string shared_name = {};  // tables of one name are one
  std::string_view name = {};    // empty = "hash_table", "MutableHashTable"
};

/// What both kinds of tables can do. A table lives as long as the session.
class LookupTable {
 public:
  const Output& handle() const { return handle_; }
  DType key_dtype() const { return key_dtype_; }
  DType value_dtype() const { return value_dtype_; }
  std::string name() const { return handle_.op().name(); }

  /// Values of the shape of `keys`; the table's default for a key that it does not have.
  Output Lookup(const Operand& keys, std::string_view name = {}, Where where = Where::current()) const;
  /// int64 scalar: how many keys there are.
  Output Size(std::string_view name = {}, Where where = Where::current()) const;

 protected:
  enum class Kind { kStatic, kMutable };
  LookupTable(Kind kind, DType key_dtype, DType value_dtype, const Operand& default_value,
              const LookupTableOptions& options, const Where& where);
  /// A node of the table below a scope of its own.
  Operation Add(std::string_view op, const std::vector<Operand>& inputs, std::string_view suffix, std::string_view name,
                const Where& where, op::AttrList attrs = {}) const;

 private:
  Kind kind_;
  DType key_dtype_, value_dtype_;
  Output default_, handle_;
};

/// A table of fixed keys and values (each a vector of n), which TablesInitializer fills.
class StaticHashTable : public LookupTable {
 public:
  StaticHashTable(const Operand& keys, const Operand& values, const Operand& default_value,
                  const LookupTableOptions& options = {}, Where where = Where::current());
  /// Fills the table; among the collection `table_initializer`.
  const Operation& initializer() const { return initializer_; }

 private:
  StaticHashTable(const Output& keys, const Output& values, const Operand& default_value,
                  const LookupTableOptions& options, const Where& where);
  Operation initializer_;
};

/// A table that steps change.
class MutableHashTable : public LookupTable {
 public:
  MutableHashTable(DType key_dtype, DType value_dtype, const Operand& default_value,
                   const LookupTableOptions& options = {}, Where where = Where::current());
  Operation Insert(const Operand& keys, const Operand& values, std::string_view name = {},
                   Where where = Where::current()) const;
  Operation Remove(const Operand& keys, std::string_view name = {}, Where where = Where::current()) const;
  struct Contents {
    Output keys;    // [n]
    Output values;  // [n]
  };
  /// All keys and their values, in no order.
  Contents Export(std::string_view name = {}, Where where = Where::current()) const;
};

/// Runs the initializers of all tables: `init_all_tables`.
Operation TablesInitializer(Graph& graph = Graph::Default(), std::string_view name = "init_all_tables",
                            Where where = Where::current());

}  // namespace weir

#endif  // WEIR_CORE_CLIENT_CONTAINERS_LOOKUP_TABLE_H_
