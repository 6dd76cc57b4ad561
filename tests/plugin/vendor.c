/* A library as vendors ship them beside their drivers. */
__attribute__((visibility("default"))) int weir_test_vendor(void);
int weir_test_vendor(void) { return 7; }
