/* The ABI's headers are C11: this file must compile without a warning. */
#include <weir/sdk/v1/plugin.h>

#include "sdk/abi/compiler.h"
#include "sdk/abi/frontdoor.h"
#include "sdk/abi/copy.h"
#include "sdk/abi/cost.h"
#include "sdk/abi/device.h"
#include "sdk/abi/device_tables.h"
#include "sdk/abi/host.h"
#include "sdk/abi/kernel.h"
#include "sdk/abi/memory.h"
#include "sdk/abi/native.h"
#include "sdk/abi/ops.h"
#include "sdk/abi/plugin.h"
#include "sdk/abi/profiler.h"
#include "sdk/abi/status.h"
#include "sdk/abi/stream.h"
#include "sdk/abi/transport.h"
#include "sdk/abi/types.h"

_Static_assert(sizeof(weir_reg) == 32, "registers are frozen at 32 bytes");
_Static_assert(sizeof(weir_str) == 16, "strings are frozen at 16 bytes");

/* The first include above checks the documented header alone. */
int weir_abi_headers_compile(void) { return WEIR_ABI_MAJOR; }
