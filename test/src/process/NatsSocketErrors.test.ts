import { execFile } from "node:child_process"
import process from "node:process"
import { expect, it } from "vitest"
import { isEndedTwice } from "../../../src/process/NatsSocketErrors.ts"

const run = (whose: string) =>
  new Promise<{ code: number; stdout: string }>((resolve) => {
    const fixture = new URL("./fixtures/LateWriteProgram.ts", import.meta.url).pathname
    const args = "Deno" in globalThis ? ["run", "-A", fixture, whose] : [fixture, whose]
    execFile(process.execPath, args, (error, stdout) => resolve({ code: Number(error?.code ?? 0), stdout }))
  })

it("the program survives the NATS library's late write, and no other uncaught error", async () => {
  const [library, reset, other] = await Promise.all([run("library"), run("reset"), run("other")])
  expect(library).toEqual({ code: 0, stdout: "still here\n" })
  expect(reset).toEqual({ code: 0, stdout: "still here\n" })
  expect(other).toEqual({ code: 1, stdout: "" })
})

it("Deno's error for a connection closed twice is recognised by its name and stack", () => {
  const thrown = (name: string, place: string) =>
    Object.assign(new Error("Bad resource ID"), {
      name,
      stack: `${name}: Bad resource ID\n    at AbortSignal (${place})`,
    })
  expect(isEndedTwice(thrown("BadResource", "ext:deno_http/00_serve.ts:1:7297"))).toBe(true)
  expect(isEndedTwice(thrown("BadResource", "ext:deno_net/01_net.js:1:1"))).toBe(false)
  expect(isEndedTwice(thrown("Error", "ext:deno_http/00_serve.ts:1:7297"))).toBe(false)
})
