#include "plugins/compiler_llvm/backend/nest.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "plugins/compiler_llvm/backend/elements.h"
#include "plugins/compiler_llvm/ops.h"
#include "sdk/abi/types.h"
#include "sdk/cpp/types.h"

namespace weir::compiler_llvm {
namespace {

constexpr int64_t kBlock = 256;  // elements that the kernels of reductions combine in lanes before the total

class NestEmitter {
 public:
  NestEmitter(Ir& ir, const Program& program, Level level)
      : ir_(ir),
        program_(program),
        level_(level),
        lanes_(static_cast<unsigned>(program.lanes)),
        inputs_(static_cast<uint32_t>(program.inputs.size())),
        values_(inputs_ + static_cast<uint32_t>(program.nodes.size())),
        rest_(program.columns % program.lanes),
        scalar_(values_),
        splat_(values_),
        vector_(values_) {}

  void Emit(const char* name) {
    LLVMTypeRef parameters[] = {ir_.Pointer(ir_.i8), ir_.i64, ir_.i64, ir_.Pointer(ir_.i8)};
    function_ =
        LLVMAddFunction(ir_.module, name, LLVMFunctionType(LLVMVoidTypeInContext(ir_.context), parameters, 4, 0));
    SetAttributes();
    entry_ = Block();
    LLVMBasicBlockRef units = Block(), done = Block();
    Begin(entry_);
    LoadAddresses();
    if (program_.loop) return EmitLoops(*program_.loop, units, done);
    EmitScalars(0, false);
    V begin = LLVMGetParam(function_, 1), end = LLVMGetParam(function_, 2);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(ir_.b);
    LLVMBuildCondBr(ir_.b, ir_.ICmp(LLVMIntSLT, begin, end), units, done);
    Begin(units);
    V unit = LLVMBuildPhi(ir_.b, ir_.i64, "unit");
    EmitUnit(unit);
    V next = ir_.Add(unit, ir_.Index(1));
    Join(unit, begin, from, next, LLVMGetInsertBlock(ir_.b));
    LLVMBuildCondBr(ir_.b, ir_.ICmp(LLVMIntSLT, next, end), units, done);
    Begin(done);
    LLVMBuildRetVoid(ir_.b);
  }

 private:
  struct Reduced {
    uint32_t value;
    const Node* node;
    uint32_t from;  // dtype of the operand
    V lane = nullptr, total = nullptr;
  };

  LLVMBasicBlockRef Block() { return LLVMAppendBasicBlockInContext(ir_.context, function_, ""); }
  void Begin(LLVMBasicBlockRef block) { LLVMPositionBuilderAtEnd(ir_.b, block); }
  static void Join(V phi, V first, LLVMBasicBlockRef from, V next, LLVMBasicBlockRef back) {
    V values[] = {first, next};
    LLVMBasicBlockRef blocks[] = {from, back};
    LLVMAddIncoming(phi, values, blocks, 2);
  }

  void SetAttributes() {
    const auto set = [&](const char* key, const char* value) {
      LLVMAddAttributeAtIndex(function_, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
                              LLVMCreateStringAttribute(ir_.context, key, static_cast<unsigned>(strlen(key)), value,
                                                        static_cast<unsigned>(strlen(value))));
    };
    const char* bits = level_ == Level::kV4 ? "512" : "256";
    set("min-legal-vector-width", bits);
    set("prefer-vector-width", bits);
    const unsigned nounwind = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddAttributeAtIndex(function_, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
                            LLVMCreateEnumAttribute(ir_.context, nounwind, 0));
  }

  const Access& AccessOf(uint32_t reg) const {
    return reg < inputs_ ? program_.inputs[reg].access : program_.outputs[reg - inputs_].access;
  }
  uint32_t Registers() const { return inputs_ + static_cast<uint32_t>(program_.outputs.size()); }
  static int64_t Bytes(uint32_t dtype) { return sdk::SizeOf(dtype); }
  const Node& NodeOf(uint32_t value) const { return program_.nodes[value - inputs_]; }
  bool IsColumn(uint32_t value) const { return program_.PlaceOf(value).column; }

  void LoadAddresses() {
    V regs = LLVMGetParam(function_, 0);
    for (uint32_t reg = 0; reg < Registers(); ++reg) {
      V at = ir_.At(regs, ir_.Index(static_cast<int64_t>(reg * sizeof(weir_reg) + offsetof(weir_reg, data))));
      base_.push_back(LLVMBuildIntToPtr(ir_.b, ir_.Load(ir_.i64, at, 8), ir_.Pointer(ir_.i8), ""));
    }
    at_ = base_;
  }

  /// Computes the values without columns that `stage` makes known: those of rows, or those of the whole nest.
  void EmitScalars(int stage, bool by_row) {
    ir_.lanes = 1;
    for (uint32_t v = 0; v < values_; ++v) {
      const Place& place = program_.PlaceOf(v);
      const bool in_unit = place.row || place.stage > 0;
      if (place.column || place.stage != stage || in_unit != by_row) continue;
      if (v < inputs_) {
        const Input& input = program_.inputs[v];
        scalar_[v] = input.constant ? Constant(ir_, input.access.dtype, input.bits) : LoadScalar(v);
      } else if (!IsReduction(NodeOf(v).op)) {
        scalar_[v] = Compute(v, [&](uint32_t operand) { return scalar_[operand]; });
      }
    }
  }

  static unsigned Align(uint32_t dtype) { return sdk::SizeOf(dtype); }
  V LoadScalar(uint32_t input) {
    const uint32_t dtype = program_.inputs[input].access.dtype;
    return FromStored(ir_, dtype, ir_.Load(StoredType(ir_, dtype), at_[input], Align(dtype)));
  }
  void StoreScalar(size_t output, V value) {
    const uint32_t dtype = program_.outputs[output].access.dtype;
    ir_.Store(ToStored(ir_, dtype, value), at_[inputs_ + output], Align(dtype));
  }

  /// The nodes on which the values depend, without those that are the same in all iterations.
  std::vector<bool> ConeOf(const std::vector<uint32_t>& roots, const std::vector<bool>& varies) const {
    std::vector<bool> cone(values_, false);
    for (const uint32_t root : roots) cone[root] = true;
    for (uint32_t v = values_; v-- > inputs_;) {
      if (!cone[v]) continue;
      for (const uint32_t operand : NodeOf(v).operands) cone[operand] = true;
    }
    for (uint32_t v = 0; v < values_; ++v) cone[v] = cone[v] && v >= inputs_ && varies[v];
    return cone;
  }

  /// All iterations for a vector of columns, then for the next one; the scalars are computed with each. Of scalars
  /// alone, once.
  void EmitLoops(const Loop& loop, LLVMBasicBlockRef vectors, LLVMBasicBlockRef done) {
    const int64_t main = program_.columns - rest_;
    if (program_.columns >= lanes_) {
      LLVMBasicBlockRef from = LLVMGetInsertBlock(ir_.b);
      LLVMBuildBr(ir_.b, vectors);
      Begin(vectors);
      V at = LLVMBuildPhi(ir_.b, ir_.i64, "");
      EmitLoop(loop, at, false);
      V next = ir_.Add(at, ir_.Index(lanes_));
      Join(at, ir_.Index(0), from, next, LLVMGetInsertBlock(ir_.b));
      LLVMBasicBlockRef after = rest_ == 0 ? done : Block();
      LLVMBuildCondBr(ir_.b, ir_.ICmp(LLVMIntSLT, next, ir_.Index(main)), vectors, after);
      Begin(after);
    } else {
      LLVMDeleteBasicBlock(vectors);
    }
    if (rest_ != 0) {
      EmitLoop(loop, ir_.Index(main), true);
      LLVMBuildBr(ir_.b, done);
      Begin(done);
    }
    LLVMBuildRetVoid(ir_.b);
  }

  /// Sets the number of lanes to that of the value.
  void Widen(uint32_t value) { ir_.lanes = IsColumn(value) ? lanes_ : 1; }

  V ComputeIn(uint32_t value, const std::vector<V>& known) {
    Widen(value);
    return Compute(value, [&](uint32_t o) { return IsColumn(value) && !IsColumn(o) ? ir_.Splat(known[o]) : known[o]; });
  }

  V LoadValue(uint32_t input, V at, bool tail) {
    const Access& access = program_.inputs[input].access;
    Widen(input);
    if (program_.inputs[input].constant) return Constant(ir_, access.dtype, program_.inputs[input].bits);
    return access.column ? FromStored(ir_, access.dtype, LoadColumns(at_[input], at, access.dtype, tail))
                         : LoadScalar(input);
  }

  /// do variables = next while the condition of the new values holds, `most` times at most, for the columns from `at`
  /// on. The variables are in registers, and what does not depend on them is computed ahead.
  void EmitLoop(const Loop& loop, V at, bool tail) {
    const auto variables = static_cast<uint32_t>(loop.next.size());
    std::vector<V> known(values_);
    std::vector<bool> varies(values_, false);
    for (uint32_t v = 0; v < values_; ++v) {
      if (v < inputs_) {
        varies[v] = v < variables;
        known[v] = LoadValue(v, at, tail);
        continue;
      }
      const std::vector<uint32_t>& operands = NodeOf(v).operands;
      varies[v] = std::any_of(operands.begin(), operands.end(), [&](uint32_t operand) { return varies[operand]; });
      if (!varies[v]) known[v] = ComputeIn(v, known);
    }
    LLVMBasicBlockRef from = LLVMGetInsertBlock(ir_.b), again = Block(), done = Block();
    const std::vector<V> first(known.begin(), known.begin() + variables);
    LLVMBuildBr(ir_.b, again);
    Begin(again);
    V turn = LLVMBuildPhi(ir_.b, ir_.i64, "");
    for (uint32_t i = 0; i < variables; ++i) known[i] = LLVMBuildPhi(ir_.b, LLVMTypeOf(first[i]), "");
    const std::vector<bool> in_body = ConeOf(loop.next, varies), in_test = ConeOf({loop.condition}, varies);
    std::vector<V> after = known;
    for (uint32_t v = inputs_; v < values_; ++v) {
      if (in_body[v]) known[v] = ComputeIn(v, known);
    }
    for (uint32_t i = 0; i < variables; ++i) after[i] = known[loop.next[i]];
    for (uint32_t v = inputs_; v < values_; ++v) {
      if (in_test[v]) after[v] = ComputeIn(v, after);
    }
    ir_.lanes = 1;
    V made = ir_.Add(turn, ir_.Index(1));
    V more = ir_.ICmp(LLVMIntULT, made, ir_.Index(static_cast<int64_t>(loop.most)));
    LLVMBasicBlockRef back = LLVMGetInsertBlock(ir_.b);
    LLVMBuildCondBr(ir_.b, ir_.And(after[loop.condition], more), again, done);
    Join(turn, ir_.Index(0), from, made, back);
    for (uint32_t i = 0; i < variables; ++i) Join(known[i], first[i], from, after[i], back);
    Begin(done);
    for (uint32_t i = 0; i < variables; ++i) {
      Widen(i);
      const uint32_t dtype = program_.inputs[i].access.dtype;
      if (IsColumn(i)) {
        StoreColumns(ToStored(ir_, dtype, after[i]), at_[inputs_ + i], at, dtype, tail);
      } else {
        StoreScalar(i, after[i]);
      }
    }
  }

  template <class Find>
  V Compute(uint32_t value, const Find& find) {
    const Node& node = NodeOf(value);
    std::vector<V> operands;
    for (const uint32_t operand : node.operands) operands.push_back(find(operand));
    const uint32_t from = program_.DtypeOf(node.operands[node.op == Op::kSelect ? 1 : 0]);
    int64_t divisor = 0;
    if (node.operands.size() > 1 && node.operands[1] < inputs_) {
      const Input& input = program_.inputs[node.operands[1]];
      const int unused = 64 - 8 * static_cast<int>(sdk::SizeOf(input.access.dtype));
      divisor = static_cast<int64_t>(input.bits << unused) >> unused;
    }
    return Element(ir_, node, from, operands, divisor);
  }

  void EmitUnit(V unit) {
    const int64_t chunks = (program_.columns + program_.chunk - 1) / program_.chunk;
    V row = unit, first = nullptr;
    length_ = ir_.Index(program_.columns);
    if (chunks > 1) {
      row = LLVMBuildUDiv(ir_.b, unit, ir_.Index(chunks), "");
      first = ir_.Mul(LLVMBuildURem(ir_.b, unit, ir_.Index(chunks), ""), ir_.Index(program_.chunk));
      V left = ir_.Sub(length_, first), whole = ir_.Index(program_.chunk);
      length_ = ir_.Select(ir_.ICmp(LLVMIntSLT, left, whole), left, whole);
    }
    FindRow(row, first);
    EmitScalars(0, true);
    for (int stage = 0; stage < program_.stages; ++stage) {
      EmitColumns(stage);
      EmitScalars(stage + 1, true);
    }
    ir_.lanes = 1;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const Output& output = program_.outputs[i];
      if (!output.access.column) StoreScalar(i, scalar_[output.value]);
    }
  }

  /// The address of each register's first element in this unit.
  void FindRow(V row, V first) {
    const size_t rank = program_.rows.size();
    std::vector<V> index(rank);
    for (size_t d = rank; d-- > 0;) {
      index[d] = d == 0 ? row : LLVMBuildURem(ir_.b, row, ir_.Index(program_.rows[d]), "");
      if (d > 0) row = LLVMBuildUDiv(ir_.b, row, ir_.Index(program_.rows[d]), "");
    }
    for (uint32_t reg = 0; reg < Registers(); ++reg) {
      const Access& access = AccessOf(reg);
      V offset = nullptr;
      const auto add = [&](V more) { offset = offset == nullptr ? more : ir_.Add(offset, more); };
      for (size_t d = 0; d < rank; ++d) {
        if (access.steps[d] != 0) add(ir_.Mul(index[d], ir_.Index(access.steps[d] * Bytes(access.dtype))));
      }
      if (access.column && first != nullptr) add(ir_.Mul(first, ir_.Index(Bytes(access.dtype))));
      at_[reg] = offset == nullptr ? base_[reg] : ir_.At(base_[reg], offset);
    }
  }

  /// One pass over the unit's columns.
  void EmitColumns(int stage) {
    const std::vector<uint32_t> roots = RootsOf(program_, stage);
    if (roots.empty()) return;
    MarkNeeded(program_, stage, roots, &needed_);
    stage_ = stage;
    std::vector<Reduced> reduced;
    for (uint32_t v = inputs_; v < values_; ++v) {
      if (IsReduction(NodeOf(v).op) && NodeOf(v).place.stage == stage + 1) {
        reduced.push_back({v, &NodeOf(v), program_.DtypeOf(NodeOf(v).operands[0])});
      }
    }
    MakeSplats();
    if (reduced.empty()) {
      EmitPlainLoop();
    } else {
      EmitReducingLoops(&reduced);
    }
    ir_.lanes = 1;
    for (const Reduced& r : reduced) {
      scalar_[r.value] = Give(ir_, r.node->op, r.from, r.total, program_.columns);
    }
  }

  void MakeSplats() {
    ir_.lanes = lanes_;
    std::fill(splat_.begin(), splat_.end(), nullptr);
    for (uint32_t v = inputs_; v < values_; ++v) {
      if (!needed_[v] || !IsColumn(v) || LoadedStash(program_, v, stage_) != nullptr) continue;
      for (const uint32_t operand : NodeOf(v).operands) {
        if (!IsColumn(operand) && splat_[operand] == nullptr) splat_[operand] = ir_.Splat(scalar_[operand]);
      }
    }
  }

  void EmitPlainLoop() {
    const bool whole = program_.chunk == program_.columns;
    V main = whole ? ir_.Index(program_.columns - rest_) : ir_.And(length_, ir_.Index(-static_cast<int64_t>(lanes_)));
    if (!whole || program_.columns >= lanes_) {
      LLVMBasicBlockRef from = LLVMGetInsertBlock(ir_.b), loop = Block(), after = Block();
      if (whole) {
        LLVMBuildBr(ir_.b, loop);
      } else {
        LLVMBuildCondBr(ir_.b, ir_.ICmp(LLVMIntSGT, main, ir_.Index(0)), loop, after);
      }
      Begin(loop);
      V at = LLVMBuildPhi(ir_.b, ir_.i64, "");
      Body(at, false);
      V next = ir_.Add(at, ir_.Index(lanes_));
      Join(at, ir_.Index(0), from, next, LLVMGetInsertBlock(ir_.b));
      LLVMBuildCondBr(ir_.b, ir_.ICmp(LLVMIntSLT, next, main), loop, after);
      Begin(after);
    }
    if (rest_ == 0) return;
    LLVMBasicBlockRef tail = Block(), after = Block();
    if (whole) {
      LLVMBuildBr(ir_.b, tail);
    } else {
      LLVMBuildCondBr(ir_.b, ir_.ICmp(LLVMIntNE, main, length_), tail, after);
    }
    Begin(tail);
    Body(main, true);
    LLVMBuildBr(ir_.b, after);
    Begin(after);
  }

  /// Combines as the kernels of kernels_eigen do: blocks in lanes, lanes in halves, then the total; what is left over
  /// element by element.
  void EmitReducingLoops(std::vector<Reduced>* reduced) {
    const int64_t main = program_.columns - rest_;
    ir_.lanes = 1;
    for (Reduced& r : *reduced) r.total = TotalStart(ir_, r.node->op, r.from);
    if (main > 0) EmitBlocks(main, reduced);
    if (rest_ == 0) return;
    Body(ir_.Index(main), true);
    for (Reduced& r : *reduced) {
      const Op op = r.node->op;
      ir_.lanes = lanes_;
      V lane = ToLane(ir_, op, r.from, vector_[r.node->operands[0]]);
      ir_.lanes = 1;
      for (int64_t i = 0; i < rest_; ++i) {
        V element = LLVMBuildExtractElement(ir_.b, lane, LLVMConstInt(ir_.i32, static_cast<uint64_t>(i), 0), "");
        r.total = Combine(ir_, op, r.from, r.total, LaneToTotal(ir_, op, r.from, element));
      }
    }
  }

  void EmitBlocks(int64_t main, std::vector<Reduced>* reduced) {
    LLVMBasicBlockRef from = LLVMGetInsertBlock(ir_.b), block = Block(), loop = Block(), fold = Block(),
                      after = Block();
    std::vector<V> totals, lanes;
    LLVMBuildBr(ir_.b, block);
    Begin(block);
    V at = LLVMBuildPhi(ir_.b, ir_.i64, "");
    for (const Reduced& r : *reduced) totals.push_back(LLVMBuildPhi(ir_.b, LLVMTypeOf(r.total), ""));
    V whole = ir_.Add(at, ir_.Index(kBlock)), last = ir_.Index(main);
    V end = ir_.Select(ir_.ICmp(LLVMIntSLT, whole, last), whole, last);
    LLVMBuildBr(ir_.b, loop);

    Begin(loop);
    ir_.lanes = lanes_;
    V i = LLVMBuildPhi(ir_.b, ir_.i64, "");
    for (const Reduced& r : *reduced) {
      lanes.push_back(LLVMBuildPhi(ir_.b, ir_.Wide(HeldType(ir_, LaneDtype(r.node->op, r.from))), ""));
    }
    Body(i, false);
    std::vector<V> combined;
    for (size_t k = 0; k < reduced->size(); ++k) {
      const Reduced& r = (*reduced)[k];
      V lane = ToLane(ir_, r.node->op, r.from, vector_[r.node->operands[0]]);
      combined.push_back(Combine(ir_, r.node->op, r.from, lanes[k], lane));
      Join(lanes[k], LaneStart(ir_, r.node->op, r.from), block, combined[k], LLVMGetInsertBlock(ir_.b));
    }
    V next = ir_.Add(i, ir_.Index(lanes_));
    Join(i, at, block, next, LLVMGetInsertBlock(ir_.b));
    LLVMBuildCondBr(ir_.b, ir_.ICmp(LLVMIntSLT, next, end), loop, fold);

    Begin(fold);
    for (size_t k = 0; k < reduced->size(); ++k) {
      Reduced& r = (*reduced)[k];
      V sum = Fold(r, combined[k]);
      V total = Combine(ir_, r.node->op, r.from, totals[k], LaneToTotal(ir_, r.node->op, r.from, sum));
      Join(totals[k], r.total, from, total, fold);
      r.total = total;
    }
    Join(at, ir_.Index(0), from, whole, fold);
    LLVMBuildCondBr(ir_.b, ir_.ICmp(LLVMIntSLT, whole, last), block, after);
    Begin(after);
  }

  /// Combines lane i with lane i + half, in halves. Leaves lanes at 1.
  V Fold(const Reduced& r, V lanes) {
    for (unsigned width = lanes_ / 2; width > 0; width /= 2) {
      std::vector<V> low, high;
      for (unsigned i = 0; i < width; ++i) {
        low.push_back(LLVMConstInt(ir_.i32, i, 0));
        high.push_back(LLVMConstInt(ir_.i32, i + width, 0));
      }
      V undefined = LLVMGetUndef(LLVMTypeOf(lanes));
      V a = LLVMBuildShuffleVector(ir_.b, lanes, undefined, LLVMConstVector(low.data(), width), "");
      V b = LLVMBuildShuffleVector(ir_.b, lanes, undefined, LLVMConstVector(high.data(), width), "");
      ir_.lanes = width;
      lanes = Combine(ir_, r.node->op, r.from, a, b);
    }
    ir_.lanes = 1;
    return LLVMBuildExtractElement(ir_.b, lanes, LLVMConstInt(ir_.i32, 0, 0), "");
  }

  /// Computes and stores `lanes` columns from `at` on; in the tail only those that exist. All loads come before all
  /// stores, since an output may share an input's memory.
  void Body(V at, bool tail) {
    ir_.lanes = lanes_;
    for (uint32_t v = 0; v < values_; ++v) {
      if (!needed_[v] || !IsColumn(v)) continue;
      const Stash* stash = LoadedStash(program_, v, stage_);
      if (v < inputs_) {
        const uint32_t dtype = program_.inputs[v].access.dtype;
        vector_[v] = FromStored(ir_, dtype, LoadColumns(at_[v], at, dtype, tail));
      } else if (stash != nullptr) {
        vector_[v] = LoadStash(*stash, at);
      }
    }
    for (uint32_t v = inputs_; v < values_; ++v) {
      if (!needed_[v] || !IsColumn(v) || LoadedStash(program_, v, stage_) != nullptr) continue;
      vector_[v] = Compute(v, [&](uint32_t o) { return IsColumn(o) ? vector_[o] : splat_[o]; });
    }
    for (const Stash& stash : program_.stashes) {
      if (stash.made == stage_) StoreStash(stash, at);
    }
    if (stage_ + 1 != program_.stages) return;
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const Output& output = program_.outputs[i];
      if (!output.access.column) continue;
      const uint32_t dtype = output.access.dtype;
      StoreColumns(ToStored(ir_, dtype, vector_[output.value]), at_[inputs_ + i], at, dtype, tail);
    }
  }

  V Column(V base, V at, int64_t bytes) { return ir_.At(base, ir_.Mul(at, ir_.Index(bytes))); }
  V StashAt(const Stash& stash, V at, int64_t bytes) {
    V base = ir_.At(LLVMGetParam(function_, 3), ir_.Index(static_cast<int64_t>(stash.offset)));
    return Column(base, at, bytes);
  }
  /// Bytes of a value in scratch memory: held form, bool as i8.
  int64_t StashBytes(uint32_t dtype) const {
    return dtype == WEIR_FLOAT16 || dtype == WEIR_BFLOAT16 ? 4 : Bytes(dtype);
  }
  V LoadStash(const Stash& stash, V at) {
    const uint32_t dtype = program_.DtypeOf(stash.value);
    const int64_t bytes = StashBytes(dtype);
    LLVMTypeRef type = dtype == WEIR_BOOL ? ir_.i8 : HeldType(ir_, dtype);
    V stored = ir_.Load(ir_.Wide(type), StashAt(stash, at, bytes), static_cast<unsigned>(bytes));
    return dtype == WEIR_BOOL ? FromStored(ir_, dtype, stored) : stored;
  }
  void StoreStash(const Stash& stash, V at) {
    const uint32_t dtype = program_.DtypeOf(stash.value);
    const int64_t bytes = StashBytes(dtype);
    V held = vector_[stash.value];
    ir_.Store(dtype == WEIR_BOOL ? ToStored(ir_, dtype, held) : held, StashAt(stash, at, bytes),
              static_cast<unsigned>(bytes));
  }

  /// The first `rest_` lanes.
  V Mask() {
    std::vector<V> bits;
    for (unsigned i = 0; i < lanes_; ++i) bits.push_back(LLVMConstInt(ir_.i1, i < rest_ ? 1 : 0, 0));
    return LLVMConstVector(bits.data(), lanes_);
  }
  bool HasMaskedMoves(uint32_t dtype) const { return level_ == Level::kV4 || Bytes(dtype) >= 4; }

  V LoadColumns(V base, V at, uint32_t dtype, bool tail) {
    LLVMTypeRef type = ir_.Wide(StoredType(ir_, dtype));
    V address = Column(base, at, Bytes(dtype));
    if (!tail) return ir_.Load(type, address, Align(dtype));
    if (HasMaskedMoves(dtype)) {
      V from = LLVMBuildBitCast(ir_.b, address, ir_.Pointer(type), "");
      V align = LLVMConstInt(ir_.i32, Align(dtype), 0);
      return ir_.CallOf("llvm.masked.load", {type, LLVMTypeOf(from)}, {from, align, Mask(), LLVMConstNull(type)});
    }
    V buffer = Buffer(type);
    ir_.Store(LLVMConstNull(type), buffer, 64);
    CopyElements(address, buffer, dtype);
    return ir_.Load(type, buffer, 64);
  }

  void StoreColumns(V stored, V base, V at, uint32_t dtype, bool tail) {
    V address = Column(base, at, Bytes(dtype));
    if (!tail) return ir_.Store(stored, address, Align(dtype));
    if (HasMaskedMoves(dtype)) {
      V to = LLVMBuildBitCast(ir_.b, address, ir_.Pointer(LLVMTypeOf(stored)), "");
      V align = LLVMConstInt(ir_.i32, Align(dtype), 0);
      (void)ir_.CallOf("llvm.masked.store", {LLVMTypeOf(stored), LLVMTypeOf(to)}, {stored, to, align, Mask()});
      return;
    }
    V buffer = Buffer(LLVMTypeOf(stored));
    ir_.Store(stored, buffer, 64);
    CopyElements(buffer, address, dtype);
  }

  /// A vector on the stack, allocated once.
  V Buffer(LLVMTypeRef type) {
    LLVMBasicBlockRef here = LLVMGetInsertBlock(ir_.b);
    LLVMPositionBuilderBefore(ir_.b, LLVMGetFirstInstruction(entry_));
    V buffer = LLVMBuildAlloca(ir_.b, type, "");
    LLVMSetAlignment(buffer, 64);
    V bytes = LLVMBuildBitCast(ir_.b, buffer, ir_.Pointer(ir_.i8), "");
    Begin(here);
    return bytes;
  }

  void CopyElements(V from, V to, uint32_t dtype) {
    LLVMBasicBlockRef before = LLVMGetInsertBlock(ir_.b), loop = Block(), after = Block();
    LLVMBuildBr(ir_.b, loop);
    Begin(loop);
    V i = LLVMBuildPhi(ir_.b, ir_.i64, "");
    LLVMTypeRef type = StoredType(ir_, dtype);
    ir_.Store(ir_.Load(type, Column(from, i, Bytes(dtype)), Align(dtype)), Column(to, i, Bytes(dtype)), Align(dtype));
    V next = ir_.Add(i, ir_.Index(1));
    Join(i, ir_.Index(0), before, next, loop);
    LLVMBuildCondBr(ir_.b, ir_.ICmp(LLVMIntSLT, next, ir_.Index(rest_)), loop, after);
    Begin(after);
  }

  Ir& ir_;
  const Program& program_;
  const Level level_;
  const unsigned lanes_;
  const uint32_t inputs_, values_;
  const int64_t rest_;  // columns of the tail
  V function_ = nullptr;
  LLVMBasicBlockRef entry_ = nullptr;
  std::vector<V> base_, at_;                // addresses of the registers; in the unit
  std::vector<V> scalar_, splat_, vector_;  // of each value; of this stage; of this body
  std::vector<bool> needed_;
  V length_ = nullptr;  // columns of the unit
  int stage_ = 0;
};

}  // namespace

void EmitNest(Ir& ir, const Program& program, Level level, const char* name) {
  NestEmitter(ir, program, level).Emit(name);
}

}  // namespace weir::compiler_llvm
