import { execFile } from "node:child_process"
import process from "node:process"
import { expect, it } from "vitest"

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
