// How random numbers made by rejection move with their parameters: implicit reparametrisation (M. Figurnov, S. Mohamed,
// A. Mnih, "Implicit reparameterization gradients", 2018). A number x drawn from the distribution function F(x; a)
// keeps its quantile F while a changes, so dx/da = -(dF/da) / (dF/dx).
#pragma once

namespace rushlight {

/// dx/da for x from the gamma distribution of shape a and scale 1.
double gamma_gradient(double a, double x);

/// dx/da / (1 - x) for x from the beta distribution of a and b = total - a, which is how Dirichlet numbers x of a row
/// whose shapes sum to `total` move: dx_j/da_i = gradient_i * ((i = j) - x_j).
double dirichlet_gradient(double x, double a, double total);

}  // namespace rushlight
