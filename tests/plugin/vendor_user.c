/* Makes a plugin depend on that library. */
__attribute__((visibility("default"))) int weir_test_vendor(void);
__attribute__((used)) static int (*volatile const use)(void) = weir_test_vendor;
