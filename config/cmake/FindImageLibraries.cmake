# ImageLibraries::ImageLibraries: libpng, libjpeg-turbo and giflib (Debian: libpng-dev, libjpeg62-turbo-dev,
# libgif-dev).
include(FindPackageHandleStandardArgs)
foreach(library IN ITEMS png jpeg gif)
  find_library(ImageLibraries_${library}_LIBRARY ${library})
  mark_as_advanced(ImageLibraries_${library}_LIBRARY)
endforeach()
find_path(ImageLibraries_png_INCLUDE_DIR png.h)
find_path(ImageLibraries_jpeg_INCLUDE_DIR jpeglib.h)
find_path(ImageLibraries_gif_INCLUDE_DIR gif_lib.h)
mark_as_advanced(ImageLibraries_png_INCLUDE_DIR ImageLibraries_jpeg_INCLUDE_DIR ImageLibraries_gif_INCLUDE_DIR)
find_package_handle_standard_args(ImageLibraries REQUIRED_VARS
  ImageLibraries_png_LIBRARY ImageLibraries_png_INCLUDE_DIR
  ImageLibraries_jpeg_LIBRARY ImageLibraries_jpeg_INCLUDE_DIR
  ImageLibraries_gif_LIBRARY ImageLibraries_gif_INCLUDE_DIR)
if(ImageLibraries_FOUND AND NOT TARGET ImageLibraries::ImageLibraries)
  add_library(ImageLibraries::ImageLibraries INTERFACE IMPORTED)
  target_link_libraries(ImageLibraries::ImageLibraries INTERFACE "${ImageLibraries_png_LIBRARY}"
    "${ImageLibraries_jpeg_LIBRARY}" "${ImageLibraries_gif_LIBRARY}")
  target_include_directories(ImageLibraries::ImageLibraries INTERFACE "${ImageLibraries_png_INCLUDE_DIR}"
    "${ImageLibraries_jpeg_INCLUDE_DIR}" "${ImageLibraries_gif_INCLUDE_DIR}")
endif()
