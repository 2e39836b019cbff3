/**
 * The entry of the commands, `task cli <command>` and the package's `bailiwick <command>`. Data goes to standard output, all else to standard error. The exit code is 0,
 * 1, or 130 after Ctrl-C (0 for a command that only Ctrl-C ends).
 */
import "../process/HideAsyncHooks.ts"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Console, Effect, Exit, Layer, References } from "effect"
import { CliConfig, CliOutput, Command, GlobalFlag } from "effect/cli"
import process from "node:process"
import { endOnHangUp } from "../process/Sighup.ts"
import { cliFor } from "./Cli.ts"
import { printable } from "./EscapeControls.ts"
import { linesOf, logger } from "./CommandReport.ts"
import * as StandardOutput from "./StandardOutput.ts"
import { cliCommand } from "../../services/platform/CommandSpelling.ts"

const version = "0.2.0"

/** Reports a wrong invocation in one line, not with a page of help. */
const presenter: CliOutput.Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Effect.sync(() => {
        const what = event.errors.map(({ message }) => printable(message)).join("; ")
        process.stderr.write(`${what}; type "${cliCommand([...event.commandPath.slice(1), "--help"].join(" "))}"\n`)
      })
      : CliOutput.defaultPresenter.present(event),
}

const settings = Layer.mergeAll(
  NodeServices.layer,
  logger,
  Layer.succeed(Console.Console, StandardOutput.console),
  Layer.succeed(References.MinimumLogLevel, "Warn"),
  CliConfig.layer({ builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] }),
  CliOutput.layerPresenter(presenter),
)

const report = (cause: Cause.Cause<unknown>) =>
  Effect.sync(() => {
    for (const line of linesOf(cause)) process.stderr.write(`${line}\n`)
  })

const words = process.argv.slice(2)

endOnHangUp()
NodeRuntime.runMain(
  Effect.raceFirst(
    StandardOutput.unread,
    Effect.flatMap(cliFor(words), (cli) => Command.runWith(cli, { version })(words)),
  ).pipe(
    Effect.tapCause(report),
    Effect.provide(settings),
  ),
  {
    disableErrorReporting: true,
    teardown: (exit, onExit) =>
      onExit(
        Exit.isSuccess(exit)
          ? Number(process.exitCode ?? 0)
          : Cause.hasInterruptsOnly(exit.cause)
          ? Number(process.exitCode ?? 130)
          : 1,
      ),
  },
)
