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

/** Decodes strictly: other than UTF-8 would otherwise be replaced silently. */
const decoded = (file: string) => <R>(bytes: Stream.Stream<Uint8Array, CliFault, R>) =>
  Stream.suspend(() => {
    const decoder = new TextDecoder("utf-8", { fatal: true })
    const read = (part?: Uint8Array) =>
      Effect.try({
        try: () => decoder.decode(part, { stream: part !== undefined }),
        catch: () => new CliFault({ message: `cannot read ${file}: it is not UTF-8` }),
      })
    return Stream.concat(Stream.mapEffect(bytes, (part) => read(part)), Stream.fromEffect(Effect.suspend(() => read())))
  })

/** Of one line: more than any command takes, and little enough to hold in memory. */
export const mostCharacters = 8 * 1024 * 1024

/** Fails at a line that goes on for too long, before the whole of it is in memory. */
const bounded = (file: string) => <R>(texts: Stream.Stream<string, CliFault, R>) =>
  Stream.suspend(() => {
    let length = 0
    return Stream.tap(texts, (text) => {
      const lengths = text.split("\n").map((line, n) => n === 0 ? length + line.length : line.length)
      length = lengths.at(-1)!
      return lengths.every((one) => one <= mostCharacters)
        ? Effect.void
        : Effect.fail(new CliFault({ message: `${file}: has a line of more than ${mostCharacters} characters` }))
    })
  })

/** Lines in order, blank ones included; fails with one line where the file cannot be read or a line is too long. */
export const linesOf = (file: string): Stream.Stream<string, CliFault, FileSystem.FileSystem | Stdio.Stdio> =>
  Stream.unwrap(Effect.gen(function* () {
    const bytes = file === "-" ? (yield* Stdio.Stdio).stdin : (yield* FileSystem.FileSystem).stream(file)
    return bytes.pipe(
      Stream.mapError(({ reason }) =>
        new CliFault({ message: `cannot read ${file}: ${reasons[reason._tag] ?? reason.message}` })
      ),
      decoded(file),
      bounded(file),
      Stream.splitLines,
    )
  }))
