import { spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, openSync } from "node:fs"
import process from "node:process"
import { expect, it } from "vitest"

const start = (out: number | "pipe") => {
  const fixture = new URL("./fixtures/UnheardProgram.ts", import.meta.url).pathname
  const args = "Deno" in globalThis ? ["run", "-A", fixture] : [fixture]
  return spawn(process.execPath, args, { stdio: ["pipe", out, out] })
}

it("the program goes on when the reader of its output is gone", async () => {
  const program = start("pipe")
  await once(program.stdout!, "data")
  program.stdout!.destroy()
  program.stderr!.destroy()
  program.stdin!.end()
  expect(await once(program, "exit")).toEqual([7, null])
}, 60_000)

// /dev/full of Linux is a file that is always full.
it.runIf(existsSync("/dev/full"))("the program goes on when the disk of its log is full", async () => {
  const program = start(openSync("/dev/full", "w"))
  program.stdin!.end()
  expect(await once(program, "exit")).toEqual([7, null])
}, 60_000)
