/* SPDX-License-Identifier: Apache-2.0
 *
 * A test in C++ on plain GoogleTest, with main() from the harness.
 */
#include <gtest/gtest.h>

#include <cstdlib>

TEST(native, runs_beside_c_tests)
{
	EXPECT_NE(std::getenv("NPUSIM_NODE"), nullptr);
}
