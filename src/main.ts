import { NodeRuntime } from "@effect/platform-node"
import { refuse } from "./Refusal.ts"
import { program } from "./Program.ts"

NodeRuntime.runMain(refuse(program), { disableErrorReporting: true })
