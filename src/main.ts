import "./process/HideAsyncHooks.ts"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Exit, Runtime } from "effect"
import { endOnHangUp } from "./process/Sighup.ts"
import { endAnyway } from "./process/ShutdownTimeout.ts"
import { forgiveLateWrites } from "./process/NatsSocketErrors.ts"
import { program } from "./Program.ts"
import { refuse } from "./process/StartupErrors.ts"
import { goOnUnheard } from "./process/StdioErrors.ts"

/** Exits with 0 after a requested stop: service managers take any other code for a crash. */
const teardown: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)

goOnUnheard()
forgiveLateWrites()
endAnyway()
endOnHangUp()
NodeRuntime.runMain(refuse(program), { disableErrorReporting: true, teardown })
