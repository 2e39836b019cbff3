/**
 * The number of generated cases. `task test:unit`, the loop of a change, tries a tenth of them, and `task test` a third:
 * all took longer than the rest of the tests. `task test:long` runs the files that use this module again, with all cases.
 */
import * as fc from "fast-check"
import process from "node:process"

const asked = process.env["GENERATED_CASES"] ?? "third"

const share = { tenth: 1 / 10, third: 1 / 3, all: 1 }[asked]
if (share === undefined) throw new Error(`GENERATED_CASES is tenth, third or all, not "${asked}"`)

/** Properties that name no number of their own: the unit configuration loads this module before each test file. */
if (asked === "tenth") fc.configureGlobal({ numRuns: 10 })

/** How many of `all` cases this run tries; at least one. */
export const runs = (all: number): number => Math.ceil(all * share)
