/**
 * The number of generated cases. `task test:unit`, the loop of a change, tries a tenth of them: all took longer than the
 * rest of its tests. `task test` tries them all.
 */
import * as fc from "fast-check"
import process from "node:process"

const few = process.env["FEW_RUNS"] !== undefined

/** Properties that name no number of their own: the unit configuration loads this module before each test file. */
if (few) fc.configureGlobal({ numRuns: 10 })

export const runs = (all: number): number => few ? Math.ceil(all / 10) : all
