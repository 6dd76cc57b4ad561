/* The parts of a plugin file: the ELF note that describes it without running its code, the one exported function,
 * and its table. */
#ifndef WEIR_SDK_ABI_PLUGIN_H_
#define WEIR_SDK_ABI_PLUGIN_H_

#include "sdk/abi/host.h"
#include "sdk/abi/status.h"
#include "sdk/abi/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The major version is the suffix of the entry symbol; minor versions only append. */
#define WEIR_ABI_MAJOR 1
#define WEIR_ABI_MINOR 1

#define WEIR_NOTE_SECTION ".note.weir"
#define WEIR_NOTE_OWNER "weir"
#define WEIR_NOTE_MAGIC "WEIRPLG"
#define WEIR_NOTE_DESCRIPTION 1 /* record type: weir_note_desc, exactly once */
#define WEIR_NOTE_USES_MINOR 2  /* record type: one u32, repeatable; the file needs their maximum */

/* Kinds (bits). Those marked reserved have no interface yet and are ignored. */
enum {
  WEIR_KIND_DEVICE = 1u,      /* device/1 */
  WEIR_KIND_KERNELS = 2u,     /* kernels/1 */
  WEIR_KIND_COMPILER = 4u,    /* compiler/1 */
  WEIR_KIND_OPS = 8u,         /* ops/1 */
  WEIR_KIND_PROFILER = 16u,   /* profiler/1, of a device plugin; informative */
  WEIR_KIND_REMOTE = 32u,     /* reserved */
  WEIR_KIND_COLLECTIVE = 64u, /* reserved */
  WEIR_KIND_TRANSPORT = 128u, /* transport/1 */
  WEIR_KIND_FRONT_DOOR = 256u /* frontdoor/1 */
};

/* Machines, and instruction-set baselines (bits; a plugin runs on CPUs that have all its bits). */
enum { WEIR_MACHINE_X86_64 = 62, WEIR_MACHINE_AARCH64 = 183 };
enum { WEIR_ISA_X86_64_V2 = 1u, WEIR_ISA_X86_64_V3 = 2u, WEIR_ISA_X86_64_V4 = 4u };

/* The sanitizer runtime of the build; host and plugin must agree. */
enum { WEIR_SANITIZER_NONE = 0, WEIR_SANITIZER_ADDRESS = 1, WEIR_SANITIZER_THREAD = 2, WEIR_SANITIZER_MEMORY = 3 };

/* Descriptor of note record 1. Text is NUL-padded. A longer descriptor is accepted, a shorter one is refused. */
typedef struct weir_note_desc {
  char magic[8];
  uint16_t record_format;
  uint16_t abi_major;
  uint16_t built_minor;
  uint16_t needs_minor;
  uint32_t kinds;
  uint32_t machine;
  uint32_t isa;
  uint32_t sanitizer;
  uint32_t must_understand;
  uint32_t op_set_min;
  uint32_t op_set_max;
  char name[32];
  char version[16];
  char vendor[32];
  char targets[64]; /* platforms that the kernels serve, separated by ';' */
} weir_note_desc;

typedef struct weir_note {
  uint32_t name_size;
  uint32_t desc_size;
  uint32_t type;
  char owner[8];
  weir_note_desc desc;
} weir_note;

/* Marks the surrounding code as needing ABI minor n. The linker gathers the records into the file's note. */
#define WEIR_USE(n)                                                                        \
  __asm__ volatile(                                                                        \
      ".pushsection .note.weir,\"a\",%%note\n .balign 4\n .long 5,4,2\n .asciz \"weir\"\n" \
      " .balign 4\n .long %c0\n .popsection" ::"i"(n))

/* Flags of an option; both reserved: the core ignores them. */
enum {
  WEIR_OPTION_DYNAMIC = 1u,    /* the value may change while the plugin runs */
  WEIR_OPTION_BEST_EFFORT = 2u /* older plugins may lack the option */
};

/* One option of the plugin. The core checks values against it before any call. */
typedef struct weir_option_spec {
  uint32_t struct_size;
  uint32_t type; /* WEIR_VALUE_INT, FLOAT, BOOL or STRING */
  uint32_t flags;         /* WEIR_OPTION_* */
  uint32_t has_range;     /* not 0: numbers are checked against minimum and maximum */
  weir_str key;           /* the configuration key is plugin.<name>.<key> */
  weir_str doc;           /* for people */
  weir_opt default_value; /* of this key and type */
  double minimum; /* both inclusive; ignored unless has_range is set */
  double maximum;
} weir_option_spec;

/* The return value of the entry function: constant, owned by the plugin, valid for the life of the process. */
typedef struct weir_plugin {
  uint32_t struct_size;
  uint16_t built_minor; /* WEIR_ABI_MINOR of its headers */
  uint16_t needs_minor; /* the least minor of a host that it works with */
  weir_str name;        /* as in the note */
  weir_str version;     /* the same */
  const weir_option_spec* const* options; /* option_count pointers */
  uint64_t option_count;
  /* Called once, before any other function. `host` stays valid until shutdown returns; a plugin that keeps `options`
   * copies them. */
  int32_t (*init)(const weir_host* host, const weir_opt* options, uint64_t option_count, weir_error* error);
  /* Called once, when no call is in progress. Joins the plugin's threads. The code stays mapped. */
  void (*shutdown)(void);
  /* Table of interface `id` ("device/1", "kernels/1", "cost/1" …) or null. Pure; any thread. */
  const void* (*get_interface)(weir_str id);
} weir_plugin;

/* The only exported symbol of a plugin. Returns null if the plugin cannot work with this host. Pure; any thread. */
#define WEIR_PLUGIN_QUERY_SYMBOL "weir_plugin_query_v1"
typedef const weir_plugin* (*weir_plugin_query_fn)(uint32_t host_major, uint32_t host_minor);

#ifdef __cplusplus
}
#endif
#endif
