// Features of sound: AudioSpectrogram, Mfcc.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "plugins/kernels_eigen/kernels/fourier.h"
#include "plugins/kernels_eigen/operands.h"
#include "plugins/kernels_eigen/sequence_families.h"

namespace weir::kernels_eigen {
namespace {

using sdk::Prep;
using sdk::Scratch;
using sdk::View;

/// Squared magnitudes, or magnitudes, of windows of the samples weighted by a periodic Hann window and padded with
/// zeros to a power of two.
struct AudioSpectrogram {
  int64_t window = 0, stride = 0, length = 0;
  int64_t samples = 0, channels = 0, frames = 0;
  bool squared = false;
  std::vector<double> weights;
  RealFourier fourier;

  int32_t Prepare(Prep& prep) {
    const weir_shape& input = prep.shape(0);
    if (input.rank != 2) return prep.error().InvalidArgument("input must be 2-dimensional", input);
    window = prep.node().Int("window_size");
    stride = prep.node().Int("stride");
    squared = prep.node().Bool("magnitude_squared");
    if (window < 2 || stride < 1 || window > int64_t{1} << 30) {
      return prep.error().InvalidArgument("Spectrogram initialization failed for window size ", window, " and stride ",
                                          stride);
    }
    samples = input.dims[0];
    channels = input.dims[1];
    length = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(window)));
    frames = samples < window ? 0 : 1 + (samples - window) / stride;
    if (const int32_t code = ExpectOutput(prep, 0, {channels, frames, 1 + length / 2}); code != WEIR_OK) return code;
    if (frames == 0 || channels == 0) return WEIR_OK;
    for (int64_t i = 0; i < window; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(window);
      weights.push_back(0.5 - 0.5 * std::cos(angle));
    }
    fourier = RealFourier(length);
    prep.Scratch(static_cast<uint64_t>(length + 1) * sizeof(RealFourier::Complex));
    return WEIR_OK;
  }

  void Run(View<const float> input, View<float> output, Scratch<RealFourier::Complex> scratch) const {
    if (channels == 0) return;
    RealFourier::Complex *pairs = scratch.data(), *frequencies = pairs + length / 2;
    auto* numbers = reinterpret_cast<double*>(pairs);
    float* out = output.data();
    for (int64_t channel = 0; channel < channels && frames > 0; ++channel) {
      for (int64_t frame = 0; frame < frames; ++frame) {
        const float* from = input.data() + frame * stride * channels + channel;
        for (int64_t i = 0; i < window; ++i) {
          numbers[i] = static_cast<double>(from[i * channels]) * weights[static_cast<size_t>(i)];
        }
        std::fill(numbers + window, numbers + length, 0.0);
        fourier.Run(pairs, frequencies);
        for (int64_t i = 0; i <= length / 2; ++i) {
          const auto power = static_cast<float>(std::norm(frequencies[i]));
          *out++ = squared ? power : std::sqrt(power);
        }
      }
    }
  }
};

double MelOf(double frequency) { return 1127.0 * std::log1p(frequency / 700.0); }

/// Cosine transforms of the logarithms of the energy in triangular bands, evenly spaced on the mel scale.
struct Mfcc {
  int64_t rows = 0, inputs = 0, bands = 0, coefficients = 0;
  double lower = 0, upper = 0;
  std::vector<double> cosines;

  int32_t Prepare(Prep& prep) {
    const weir_shape &input = prep.shape(0), &rate = prep.shape(1);
    if (input.rank != 3) return prep.error().InvalidArgument("spectrogram must be 3-dimensional", input);
    if (sdk::SizeOf(rate) != 1) {
      return prep.error().InvalidArgument("Input sample_rate should be a scalar tensor, got ", rate, " instead.");
    }
    inputs = input.dims[2];
    bands = prep.node().Int("filterbank_channel_count");
    coefficients = prep.node().Int("dct_coefficient_count");
    lower = prep.node().Float("lower_frequency_limit");
    upper = prep.node().Float("upper_frequency_limit");
    const int32_t code = ExpectOutput(prep, 0, {input.dims[0], input.dims[1], coefficients});
    if (code != WEIR_OK) return code;
    rows = sdk::SizeOf(prep.output(0).shape) == 0 ? 0 : input.dims[0] * input.dims[1];
    if (rows == 0 || !Possible()) return WEIR_OK;
    if (bands > int64_t{1} << 20 || coefficients * bands > int64_t{1} << 24) {
      return prep.error().InvalidArgument("filterbank_channel_count ", bands, " and dct_coefficient_count ",
                                          coefficients, " are too large");
    }
    const double scale = std::sqrt(2.0 / static_cast<double>(bands));
    for (int64_t i = 0; i < coefficients; ++i) {
      for (int64_t j = 0; j < bands; ++j) {
        const double angle = std::numbers::pi / static_cast<double>(bands) * (static_cast<double>(j) + 0.5);
        cosines.push_back(scale * std::cos(static_cast<double>(i) * angle));
      }
    }
    prep.Scratch(static_cast<uint64_t>(2 * inputs + 2 * bands + 1) * sizeof(double));
    return WEIR_OK;
  }

  int32_t Run(sdk::Env& env, View<const float> spectrogram, View<const int32_t> rate, View<float> output,
              Scratch<double> scratch) const {
    if (rows == 0) return WEIR_OK;
    if (rate[0] <= 0 || !Possible()) {
      return env.error().InvalidArgument("Mfcc initialization failed for channel count ", inputs, ", sample rate ",
                                         rate[0], " and filterbank_channel_count ", bands);
    }
    Bank bank{scratch.data(), scratch.data() + inputs};
    double *centers = scratch.data() + 2 * inputs, *energies = centers + bands + 1;
    PlanBank(rate[0], centers, &bank);
    const float* from = spectrogram.data();
    float* to = output.data();
    for (int64_t row = 0; row < rows; ++row, from += inputs, to += coefficients) {
      if (bank.last >= inputs) {  // the upper limit lies beyond the highest frequency
        std::fill_n(to, coefficients, 0.0f);
        continue;
      }
      Energies(bank, from, energies);
      for (int64_t i = 0; i < coefficients; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < bands; ++j) sum += cosines[static_cast<size_t>(i * bands + j)] * energies[j];
        to[i] = static_cast<float>(sum);
      }
    }
    return WEIR_OK;
  }

 private:
  /// By input frequency: the band on whose falling side it lies (-1: below the first center), and its weight there; the
  /// rest of it belongs to the next band.
  struct Bank {
    double* band;
    double* weight;
    int64_t first = 0, last = 0;
  };

  bool Possible() const {
    return bands >= 1 && coefficients >= 1 && coefficients <= bands && inputs >= 2 && lower >= 0 && upper > lower;
  }

  void PlanBank(int32_t rate, double* centers, Bank* bank) const {
    const double low = MelOf(lower), spacing = (MelOf(upper) - low) / static_cast<double>(bands + 1);
    for (int64_t i = 0; i <= bands; ++i) centers[i] = low + spacing * static_cast<double>(i + 1);
    const double hertz = 0.5 * rate / static_cast<double>(inputs - 1);
    bank->first = static_cast<int64_t>(std::min(1.5 + lower / hertz, 1e18));
    bank->last = static_cast<int64_t>(std::min(upper / hertz, 1e18));
    int64_t band = 0;
    for (int64_t i = bank->first; i <= std::min(bank->last, inputs - 1); ++i) {
      const double mel = MelOf(static_cast<double>(i) * hertz);
      while (band < bands && centers[band] < mel) ++band;
      const double left = band > 0 ? centers[band - 1] : low;
      bank->band[i] = static_cast<double>(band - 1);
      bank->weight[i] = (centers[band] - mel) / (centers[band] - left);
    }
  }

  /// The logarithms of the bands' energies.
  void Energies(const Bank& bank, const float* from, double* energies) const {
    std::fill_n(energies, bands, 0.0);
    for (int64_t i = bank.first; i <= bank.last; ++i) {
      const double magnitude = std::sqrt(static_cast<double>(from[i])), falling = magnitude * bank.weight[i];
      const auto band = static_cast<int64_t>(bank.band[i]);
      if (band >= 0) energies[band] += falling;
      if (band + 1 < bands) energies[band + 1] += magnitude - falling;
    }
    for (int64_t i = 0; i < bands; ++i) energies[i] = std::log(energies[i] < 1e-12 ? 1e-12 : energies[i]);
  }
};

}  // namespace

void AddAudio(sdk::KernelTable& k) {
  k.Add<AudioSpectrogram>("AudioSpectrogram").Class(WEIR_CLASS_FFT, 50);
  k.Add<Mfcc>("Mfcc").Class(WEIR_CLASS_REDUCE, 100);
}

}  // namespace weir::kernels_eigen
