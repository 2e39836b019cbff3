import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { forgiveLateWrites } from "./LateWrite.ts"
import { program } from "./Program.ts"
import { refuse } from "./Refusal.ts"

forgiveLateWrites()
NodeRuntime.runMain(refuse(program), { disableErrorReporting: true })
