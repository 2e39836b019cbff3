/** Effect without async_hooks: an endless loop holds no more memory after many turns than after few. */
import { assert, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import process from "node:process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const flags = "Deno" in globalThis
  ? ["run", "-A", "--node-modules-dir=manual", "--no-lock", "--v8-flags=--expose-gc"]
  : ["--expose-gc"]

/** The live heap, in bytes, at the end of a fixture, after a collection. */
const heapOf = async (fixture: string, ...args: ReadonlyArray<string>): Promise<number> => {
  const module = fileURLToPath(new URL(`fixtures/${fixture}`, import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, module, ...args])
  return Number(stdout)
}

const growthOf = async (fixture: string, ...args: ReadonlyArray<string>): Promise<number> => {
  const few = await heapOf(fixture, "1000", ...args)
  return await heapOf(fixture, "100000", ...args) - few
}

describe("HideAsyncHooks", () => {
  it("the live heap of an endless loop stays the same", async () => {
    assert.isBelow(await growthOf("TurnOrder.ts"), 700_000)
  })

  it.skipIf(!("Deno" in globalThis))(
    "is still needed on this Deno",
    async () => {
      const needed =
        "Deno keeps no past of AsyncResources any more: delete src/process/HideAsyncHooks.ts and its imports"
      assert.isAbove(await growthOf("AsyncResources.ts"), 11_700_000, needed)
      assert.isAbove(await growthOf("TurnOrder.ts", "plain"), 1_700_000, needed)
    },
  )
})
