import "./process/HideAsyncHooks.ts"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Exit, Runtime } from "effect"
import { endOnHangUp } from "./process/HangUp.ts"
import { endAnyway } from "./process/LastResort.ts"
import { forgiveLateWrites } from "./process/LateWrite.ts"
import { program } from "./Program.ts"
import { refuse } from "./process/Refusal.ts"
import { goOnUnheard } from "./process/Unheard.ts"

/** Exits with 0 after a requested stop: service managers take any other code for a crash. */
const teardown: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)

goOnUnheard()
forgiveLateWrites()
endAnyway()
endOnHangUp()
NodeRuntime.runMain(refuse(program), { disableErrorReporting: true, teardown })
