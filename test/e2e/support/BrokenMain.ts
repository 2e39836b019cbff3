/**
 * The program, in which SIGUSR2 breaks the part that `BREAKS` names: the listener (its socket is closed under it), or
 * everything (an uncaught error).
 */
import "../../../src/process/HideAsyncHooks.ts"
import { Server } from "node:http"
import process from "node:process"

const breaks: Array<() => void> = []

const deno = Reflect.get(globalThis, "Deno") as undefined | {
  listen: (options: unknown) => { readonly close: () => void }
}

if (deno !== undefined) {
  const { listen } = deno
  deno.listen = (options) => {
    const listener = listen(options)
    breaks.push(() => listener.close())
    return listener
  }
}

const { listen } = Server.prototype
Server.prototype.listen = function (this: Server, ...args: Array<unknown>) {
  breaks.push(() =>
    this.emit("error", Object.assign(new Error("accept EINVAL"), { code: "EINVAL", syscall: "accept" }))
  )
  return Reflect.apply(listen, this, args)
} as typeof listen

process.on("SIGUSR2", () => {
  if (process.env["BREAKS"] === "listener") { for (const act of breaks) act() }
  else throw new Error("broken")
})

await import("../../../src/main.ts")
