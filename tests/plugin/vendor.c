/* A library such as vendors ship with their drivers. */
__attribute__((visibility("default"))) int weir_test_vendor(void);
int weir_test_vendor(void) { return 7; }
