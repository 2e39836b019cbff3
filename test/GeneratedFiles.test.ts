/** Files that are made of the contract are as the contract stands: `deno task check` says which task writes them anew. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { clientContract, clientKeyedPaths, contractFile, keyedFile } from "./support/ClientContract.ts"
import { consoleRoutes, routesFile } from "./support/ConsoleRoutes.ts"

describe("files made of the contract", () => {
  it("the client's types", () => {
    const hint = "run `deno task client:contract`"
    assert.strictEqual(readFileSync(contractFile, "utf8"), clientContract(), hint)
    assert.strictEqual(readFileSync(keyedFile, "utf8"), clientKeyedPaths(), hint)
  })

  it("the console's table of routes", () => {
    assert.strictEqual(readFileSync(routesFile, "utf8"), consoleRoutes(), "run `deno task console:routes`")
  })
})
