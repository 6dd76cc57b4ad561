// Checks the binary layout of the plugin ABI: compares every size and offset with the committed table.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "sdk/abi/compiler.h"
#include "sdk/abi/copy.h"
#include "sdk/abi/cost.h"
#include "sdk/abi/device.h"
#include "sdk/abi/device_tables.h"
#include "sdk/abi/frontdoor.h"
#include "sdk/abi/host.h"
#include "sdk/abi/kernel.h"
#include "sdk/abi/memory.h"
#include "sdk/abi/native.h"
#include "sdk/abi/ops.h"
#include "sdk/abi/plugin.h"
#include "sdk/abi/profiler.h"
#include "sdk/abi/stream.h"
#include "sdk/abi/transport.h"

namespace weir {
namespace {

struct Field {
  const char* name;
  size_t offset;
  size_t size;
};

class LayoutTable {
 public:
  /// Adds the fields in order. A gap is padding, which the ABI does not have, or a field missing from the list.
  void Add(const char* name, size_t size, const std::vector<Field>& fields) {
    text_ << name << ' ' << size << '\n';
    size_t end = 0;
    for (const Field& field : fields) {
      EXPECT_EQ(field.offset, end) << name << ": a gap or an unlisted field before " << field.name;
      text_ << "  " << field.name << ' ' << field.offset << ' ' << field.size << '\n';
      end = field.offset + field.size;
    }
    EXPECT_EQ(end, size) << name << ": a gap or an unlisted field at its end";
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
};

#define F(field) \
  { #field, offsetof(S, field), sizeof(S::field) }

void AddData(LayoutTable& table) {
  {
    using S = weir_str;
    table.Add("weir_str", sizeof(S), {F(data), F(size)});
  }
  {
    using S = weir_shape;
    table.Add("weir_shape", sizeof(S), {F(rank), F(reserved), F(dims)});
  }
  {
    using S = weir_buf;
    table.Add("weir_buf", sizeof(S), {F(struct_size), F(space), F(handle), F(offset), F(bytes), F(host)});
  }
  {
    using S = weir_tensor;
    table.Add("weir_tensor", sizeof(S), {F(struct_size), F(dtype), F(flags), F(rank), F(dims), F(buf)});
  }
  {
    using S = weir_reg;
    table.Add("weir_reg", sizeof(S), {F(data), F(handle), F(shape), F(dtype), F(flags)});
  }
  {
    using S = weir_opt;
    table.Add("weir_opt", sizeof(S), {F(key), F(type), F(flags), F(value)});
  }
  {
    using S = weir_attr;
    table.Add("weir_attr", sizeof(S),
              {F(struct_size), F(type), F(count), F(i), F(f), F(s), F(shape), F(tensor), F(ints), F(floats), F(bools),
               F(dtypes), F(strings), F(shapes), F(tensors)});
  }
  {
    using S = weir_error;
    table.Add("weir_error", sizeof(S),
              {F(struct_size), F(code), F(vendor_code), F(flags), F(reserved), F(message), F(capacity), F(length)});
  }
  {
    using S = weir_host;
    table.Add("weir_host", sizeof(S),
              {F(struct_size), F(abi_minor),   F(log),          F(enabled),    F(schedule),      F(parallel_for),
               F(host_alloc),  F(host_free),   F(node_name),    F(node_op),    F(attr),          F(constant_input),
               F(input),       F(input_range), F(output),       F(set_output), F(forward),       F(temp),
               F(step_id),     F(cancelled),   F(string_visit), F(string_set), F(get_interface), F(node_resource),
               F(done),        F(time_left),   F(device),       F(stream),     F(native_stream)});
  }
  {
    using S = weir_note_desc;
    table.Add(
        "weir_note_desc", sizeof(S),
        {F(magic), F(record_format), F(abi_major), F(built_minor), F(needs_minor), F(kinds), F(machine), F(isa),
         F(sanitizer), F(must_understand), F(op_set_min), F(op_set_max), F(name), F(version), F(vendor), F(targets)});
  }
  {
    using S = weir_note;
    table.Add("weir_note", sizeof(S), {F(name_size), F(desc_size), F(type), F(owner), F(desc)});
  }
  {
    using S = weir_option_spec;
    table.Add(
        "weir_option_spec", sizeof(S),
        {F(struct_size), F(type), F(flags), F(has_range), F(key), F(doc), F(default_value), F(minimum), F(maximum)});
  }
  {
    using S = weir_plugin;
    table.Add("weir_plugin", sizeof(S),
              {F(struct_size), F(built_minor), F(needs_minor), F(name), F(version), F(options), F(option_count),
               F(init), F(shutdown), F(get_interface)});
  }
}

void AddDevicesAndKernels(LayoutTable& table) {
  {
    using S = weir_device_record;
    table.Add(
        "weir_device_record", sizeof(S),
        {F(struct_size), F(flags), F(uid), F(class_id), F(kind), F(platform), F(name), F(driver_version), F(vendor_id),
         F(device_id), F(numa_node), F(reserved), F(memory_bytes), F(alignment), F(largest_allocation)});
  }
  {
    using S = weir_device_api;
    table.Add("weir_device_api", sizeof(S),
              {F(struct_size), F(reserved), F(enumerate), F(open), F(close), F(make_current), F(alloc), F(free),
               F(mem_info), F(memset), F(copy), F(health), F(set_options)});
  }
  {
    using S = weir_stream_api;
    table.Add("weir_stream_api", sizeof(S),
              {F(struct_size), F(reserved), F(stream_create), F(stream_destroy), F(event_create), F(event_destroy),
               F(record), F(wait), F(query), F(sync), F(on_complete), F(poison), F(capture_begin), F(capture_end),
               F(capture_launch), F(capture_free), F(mark), F(failed_mark)});
  }
  {
    using S = weir_copy_api;
    table.Add("weir_copy_api", sizeof(S), {F(struct_size), F(reserved), F(can_copy), F(copy_peer)});
  }
  {
    using S = weir_export;
    table.Add("weir_export", sizeof(S), {F(struct_size), F(kind), F(fd), F(bytes), F(ipc)});
  }
  {
    using S = weir_memory_api;
    table.Add("weir_memory_api", sizeof(S),
              {F(struct_size), F(reserved), F(pinned_alloc), F(pinned_free), F(register_host), F(unregister_host),
               F(alloc_async), F(free_async), F(export_handle), F(import_handle), F(granularity)});
  }
  {
    using S = weir_native_api;
    table.Add("weir_native_api", sizeof(S), {F(struct_size), F(reserved), F(platform_abi), F(native)});
  }
  {
    using S = weir_profile;
    table.Add(
        "weir_profile", sizeof(S),
        {F(struct_size), F(provenance), F(peak_flops_per_ns), F(bandwidth_bytes_per_ns), F(cache_bytes),
         F(cache_bandwidth_bytes_per_ns), F(launch_ns), F(issue_gap_ns), F(sync_wake_ns), F(half_saturation_flops),
         F(half_saturation_bytes), F(compute_efficiency), F(memory_efficiency), F(queues), F(copy_engines)});
  }
  {
    using S = weir_link;
    table.Add("weir_link", sizeof(S),
              {F(struct_size), F(flags), F(latency_ns), F(bandwidth_pageable_bytes_per_ns),
               F(bandwidth_pinned_bytes_per_ns), F(max_concurrent), F(provenance)});
  }
  {
    using S = weir_cost;
    table.Add("weir_cost", sizeof(S),
              {F(struct_size), F(cost_class), F(whole_ns), F(flops), F(bytes), F(fixed_ns), F(scratch_bytes)});
  }
  {
    using S = weir_cost_api;
    table.Add("weir_cost_api", sizeof(S), {F(struct_size), F(reserved), F(profile), F(link), F(calibrate)});
  }
  {
    using S = weir_operand;
    table.Add("weir_operand", sizeof(S),
              {F(struct_size), F(dtype), F(space), F(flags), F(shape), F(alignment), F(value)});
  }
  {
    using S = weir_prep_args;
    table.Add("weir_prep_args", sizeof(S),
              {F(struct_size), F(must), F(node), F(device), F(input_count), F(output_count), F(inputs), F(outputs),
               F(max_tiles), F(deterministic), F(reserved)});
  }
  {
    using S = weir_alias;
    table.Add("weir_alias", sizeof(S), {F(input), F(output), F(kind), F(reserved)});
  }
  {
    using S = weir_env;
    table.Add("weir_env", sizeof(S),
              {F(struct_size), F(flags), F(tile_begin), F(tile_end), F(stream), F(native_stream), F(error)});
  }
  {
    using S = weir_prepared;
    table.Add("weir_prepared", sizeof(S),
              {F(struct_size), F(flags), F(fn), F(state), F(scratch_bytes), F(scratch_alignment), F(aliases),
               F(alias_count), F(reserved), F(tiles)});
  }
  {
    using S = weir_type_constraint;
    table.Add("weir_type_constraint", sizeof(S), {F(attr), F(dtypes)});
  }
  {
    using S = weir_kernel;
    table.Add("weir_kernel", sizeof(S),
              {F(struct_size),     F(flags),      F(op),          F(platform),          F(types),
               F(type_count),      F(priority),   F(host_inputs), F(host_outputs),      F(variable_reads),
               F(variable_writes), F(cost_class), F(reserved),    F(flops_per_element), F(supports),
               F(estimate),        F(user),       F(prepare),     F(unprepare),         F(create),
               F(compute),         F(destroy),    F(cancel)});
  }
  {
    using S = weir_kernels_api;
    table.Add("weir_kernels_api", sizeof(S), {F(struct_size), F(reserved), F(kernels), F(kernel_count)});
  }
}

void AddCompilers(LayoutTable& table) {
  {
    using S = weir_region_value;
    table.Add("weir_region_value", sizeof(S), {F(struct_size), F(dtype), F(shape), F(constant)});
  }
  {
    using S = weir_region_node;
    table.Add("weir_region_node", sizeof(S),
              {F(struct_size), F(operand_count), F(op), F(operands), F(attrs), F(attr_count), F(axes), F(axis_count),
               F(result), F(kernel_ns)});
  }
  {
    using S = weir_region;
    table.Add("weir_region", sizeof(S),
              {F(struct_size), F(flags), F(input_count), F(node_count), F(output_count), F(reserved), F(inputs),
               F(nodes), F(outputs), F(loop)});
  }
  {
    using S = weir_region_loop;
    table.Add("weir_region_loop", sizeof(S),
              {F(struct_size), F(variable_count), F(next), F(condition), F(reserved), F(most_iterations)});
  }
  {
    using S = weir_compile_target;
    table.Add("weir_compile_target", sizeof(S), {F(struct_size), F(reserved), F(platform), F(isa), F(cpu), F(profile)});
  }
  {
    using S = weir_cancel;
    table.Add("weir_cancel", sizeof(S), {F(struct_size), F(reserved), F(cancelled), F(arg)});
  }
  {
    using S = weir_compile_options;
    table.Add("weir_compile_options", sizeof(S), {F(struct_size), F(reserved), F(max_tiles)});
  }
  {
    using S = weir_claim;
    table.Add("weir_claim", sizeof(S),
              {F(struct_size), F(node_count), F(nodes), F(predicted_ns), F(compile_ns), F(scratch_bytes), F(reason)});
  }
  {
    using S = weir_executable_spec;
    table.Add("weir_executable_spec", sizeof(S),
              {F(struct_size), F(input_count), F(output_count), F(alias_count), F(inputs), F(outputs), F(aliases),
               F(scratch_bytes), F(scratch_alignment), F(tiles)});
  }
  {
    using S = weir_compiler_api;
    table.Add("weir_compiler_api", sizeof(S),
              {F(struct_size), F(reserved), F(claim), F(compile), F(io_spec), F(execute), F(destroy), F(serialize),
               F(deserialize), F(compat), F(key), F(claim_loop)});
  }
}

void AddTransport(LayoutTable& table) {
  {
    using S = weir_bytes;
    table.Add("weir_bytes", sizeof(S), {F(data), F(size)});
  }
  {
    using S = weir_transport_end;
    table.Add("weir_transport_end", sizeof(S),
              {F(struct_size), F(flags), F(job), F(task), F(peer_timeout_ms), F(incarnation), F(cluster), F(token),
               F(tls_certificate), F(tls_key), F(tls_authorities)});
  }
  {
    using S = weir_message;
    table.Add("weir_message", sizeof(S), {F(struct_size), F(method), F(meta), F(bodies), F(body_count)});
  }
  {
    using S = weir_arrival;
    table.Add(
        "weir_arrival", sizeof(S),
        {F(struct_size), F(method), F(meta), F(body_bytes), F(body_count), F(time_left_ms), F(peer), F(incarnation)});
  }
  {
    using S = weir_service;
    table.Add("weir_service", sizeof(S),
              {F(struct_size), F(reserved), F(ctx), F(begin), F(received), F(cancelled), F(ended), F(release),
               F(told)});
  }
  {
    using S = weir_receiver;
    table.Add("weir_receiver", sizeof(S), {F(struct_size), F(reserved), F(ctx), F(place), F(done), F(told)});
  }
  {
    using S = weir_transport_api;
    table.Add("weir_transport_api", sizeof(S),
              {F(struct_size), F(reserved), F(scheme), F(listen), F(address), F(drain), F(close), F(connect),
               F(disconnect), F(call), F(cancel), F(reply), F(renew), F(receive), F(run_after), F(tell),
               F(tell_caller)});
  }
}

void AddOps(LayoutTable& table) {
  {
    using S = weir_shape_args;
    table.Add("weir_shape_args", sizeof(S),
              {F(struct_size), F(input_count), F(output_count), F(reserved), F(node), F(inputs)});
  }
  {
    using S = weir_gradient;
    table.Add("weir_gradient", sizeof(S),
              {F(struct_size), F(input_count), F(output_count), F(reserved), F(node), F(graph), F(x), F(y), F(dy),
               F(apply), F(constant_like), F(constant_ints), F(set)});
  }
  {
    using S = weir_op;
    table.Add("weir_op", sizeof(S),
              {F(struct_size), F(flags), F(name), F(inputs), F(outputs), F(attrs), F(input_count), F(output_count),
               F(attr_count), F(reserved), F(doc), F(user), F(shape), F(gradient), F(no_gradient)});
  }
  {
    using S = weir_ops_api;
    table.Add("weir_ops_api", sizeof(S), {F(struct_size), F(reserved), F(ops), F(op_count)});
  }
}

void AddProfiler(LayoutTable& table) {
  {
    using S = weir_activity;
    table.Add("weir_activity", sizeof(S),
              {F(struct_size), F(kind), F(stream), F(mark), F(begin_ns), F(end_ns), F(bytes), F(name)});
  }
  {
    using S = weir_profiler_api;
    table.Add("weir_profiler_api", sizeof(S), {F(struct_size), F(reserved), F(start), F(stop), F(drain), F(clock)});
  }
  {
    using S = weir_device_tables;
    table.Add("weir_device_tables", sizeof(S), {F(struct_size), F(reserved), F(table)});
  }
}

void AddFrontDoors(LayoutTable& table) {
  {
    using S = weir_door_request;
    table.Add("weir_door_request", sizeof(S),
              {F(struct_size), F(reserved), F(method), F(body), F(peer), F(time_left_ns)});
  }
  {
    using S = weir_door_handler;
    table.Add("weir_door_handler", sizeof(S), {F(struct_size), F(reserved), F(arg), F(call), F(cancelled)});
  }
  {
    using S = weir_door_options;
    table.Add("weir_door_options", sizeof(S),
              {F(struct_size), F(inherited_socket), F(address), F(service), F(tls_certificate), F(tls_key),
               F(tls_authorities), F(max_request_bytes), F(max_connections), F(max_connections_host), F(max_calls),
               F(handshake_ms)});
  }
  {
    using S = weir_front_door_api;
    table.Add("weir_front_door_api", sizeof(S),
              {F(struct_size), F(reserved), F(scheme), F(serve), F(address), F(answer), F(refuse), F(stop), F(connect),
               F(call), F(cancel), F(disconnect), F(renew)});
  }
}

#undef F

TEST(AbiLayout, IsTheCommittedOne) {
  LayoutTable table;
  AddData(table);
  AddDevicesAndKernels(table);
  AddCompilers(table);
  AddOps(table);
  AddProfiler(table);
  AddTransport(table);
  AddFrontDoors(table);
  const char* root = std::getenv("WEIR_SOURCE_DIR");
  ASSERT_NE(root, nullptr);
  const std::string path = std::string(root) + "/sdk/abi/layout.txt";
  if (std::getenv("WEIR_WRITE_LAYOUT") != nullptr) std::ofstream(path) << table.text();
  std::ifstream file(path);
  const std::string committed((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(table.text(), committed) << "the ABI's layout changed. Fields may only be appended, and never to a frozen "
                                        "struct; then write the table anew "
                                        "with WEIR_WRITE_LAYOUT=1 and say so in sdk/CHANGELOG.md";
}

}  // namespace
}  // namespace weir
