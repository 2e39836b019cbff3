/** The cases of test/e2e/Connections on node:http of Deno, the fallback where Deno's own server cannot be used. */
import { describe } from "@effect/vitest"
import { connectionCases, denoRuns } from "../../e2e/support/ConnectionCases.ts"

describe.skipIf(!denoRuns)("on Deno", () => connectionCases("true"))
