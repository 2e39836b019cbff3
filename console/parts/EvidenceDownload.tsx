/** Keeps a pack of evidence in a file: its parts are asked for one after the other, and the download can be stopped. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { ask, type Refused } from "../contract/Ask.ts"
import { refusalOf } from "../Resource.ts"
import { announce } from "./Announce.tsx"
import { Failure } from "./Failure.tsx"
import { saveFile } from "./SaveFile.ts"

interface Asked {
  readonly institution_id: string
  readonly person_id?: string
  readonly review_id?: string
}

/** All parts as one text; `tell` hears how many there are so far. */
const collected = async ({ institution_id, ...scope }: Asked, signal: AbortSignal, tell: (n: number) => void) => {
  const parts: Array<string> = []
  let after: string | undefined
  do {
    const query = after === undefined ? scope : { ...scope, after }
    const part = await ask("getEvidencePack", { params: { institution_id }, query }, { signal })
    parts.push(part)
    tell(parts.length)
    after = JSON.parse(part.trimEnd().split("\n").at(-1)!).next ?? undefined
  } while (after !== undefined)
  return parts.join("")
}

export const EvidenceDownload = ({ asked, label, name }: {
  readonly asked: Asked
  readonly label: string
  /** The file's name, without its ending. */
  readonly name: string
}): JSX.Element => {
  const got = useSignal<number | null>(null)
  const failure = useSignal<Refused | null>(null)
  const running = useRef<AbortController | null>(null)
  useEffect(() => () => running.current?.abort(), [])
  const stop = () => {
    running.current?.abort()
    running.current = null
    got.value = null
  }
  const run = async () => {
    const { signal } = running.current = new AbortController()
    got.value = 0
    failure.value = null
    try {
      const text = await collected(asked, signal, (n) => void (signal.aborted || (got.value = n)))
      if (signal.aborted) return
      saveFile(`${name}.ndjson`, "application/x-ndjson", text)
      announce("The file has the whole pack, signed.")
    } catch (cause) {
      if (signal.aborted) return
      failure.value = refusalOf(cause)
    }
    stop()
  }
  return (
    <>
      {got.value === null ? <button type="button" onClick={() => void run()}>{label}</button> : (
        <>
          <span class="note" role="status">{got.value} parts so far</span>
          <button type="button" onClick={stop}>Stop the download</button>
        </>
      )}
      <Failure of={failure} />
    </>
  )
}
