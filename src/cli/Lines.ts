/** The lines of a file, or of standard input where its name is `-`. */
import { Effect, FileSystem, Stdio, Stream } from "effect"
import { Argument } from "effect/cli"
import { CliFault } from "./CliFault.ts"

export const fileArgument = Argument.String("FILE").pipe(
  Argument.withDescription("NDJSON, one object a line; - reads standard input"),
)

const reasons: Readonly<Record<string, string>> = {
  NotFound: "there is no such file",
  PermissionDenied: "this user may not read it",
  BadResource: "it is not a file",
}

/** Lines in order, blank ones included; fails with one line where the file cannot be read. */
export const linesOf = (file: string): Stream.Stream<string, CliFault, FileSystem.FileSystem | Stdio.Stdio> =>
  Stream.unwrap(Effect.gen(function* () {
    const bytes = file === "-" ? (yield* Stdio.Stdio).stdin : (yield* FileSystem.FileSystem).stream(file)
    return bytes.pipe(
      Stream.mapError(({ reason }) =>
        new CliFault({ message: `cannot read ${file}: ${reasons[reason._tag] ?? reason.message}` })
      ),
      Stream.decodeText,
      Stream.splitLines,
    )
  }))
