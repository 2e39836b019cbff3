/** Files that are made of the contract are as the contract stands: `deno task check` says which task writes them anew. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { clientContract, clientKeyedPaths, contractFile, keyedFile } from "./support/ClientContract.ts"
import { examples } from "../src/http/docs/RecordedExamples.ts"
import { consoleRoutes, routesFile } from "./support/ConsoleRoutes.ts"
import { exampleFaults, examplesFile, exampleText } from "./support/examples/Examples.ts"

describe("files made of the contract", () => {
  it("the client's types", () => {
    const hint = "run `deno task client:contract`"
    assert.strictEqual(readFileSync(contractFile, "utf8"), clientContract(), hint)
    assert.strictEqual(readFileSync(keyedFile, "utf8"), clientKeyedPaths(), hint)
  })

  it("the console's table of routes", () => {
    assert.strictEqual(readFileSync(routesFile, "utf8"), consoleRoutes(), "run `deno task console:routes`")
  })

  it("a recorded example for every operation, which fits its schema and holds nothing of its run", () => {
    const hint = "run `deno task examples`; an operation that no test asks there wants a line in SeldomAsked.test.ts"
    assert.deepStrictEqual(exampleFaults(examples), [], hint)
    assert.strictEqual(readFileSync(examplesFile, "utf8"), exampleText(examples), hint)
    assert.notMatch(readFileSync(examplesFile, "utf8"), /eyJ|127\.0\.0\.1:|BEGIN [A-Z ]*KEY/)
  })
})
