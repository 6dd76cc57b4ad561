# Sources of the devices, which contain no code of the device itself, and of the drivers below them.
set(WEIR_GPU_DEVICE_SOURCES device/gpu_device.cc device/stream.cc)
set(WEIR_GPU_VENDOR_DRIVER platform/vendor_driver.cc)
set(WEIR_GPU_EMULATED_DRIVER platform/emulated_driver.cc platform/emulated_card.cc platform/emulated_stream.cc)
