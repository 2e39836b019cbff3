/** A refusal in words: what is wrong, and the faults of single fields. */
import type { Signal } from "@preact/signals"
import type { JSX } from "preact"
import type { Refused } from "../contract/Ask.ts"

/** The refusals that the shell answers with a dialog. */
export const endsSession = ({ code }: Refused): boolean => code === "invalid_credentials" || code === "invalid_token"
export const asksSignIn = ({ code }: Refused): boolean => code === "insufficient_user_authentication"

const requestOf = ({ members }: Refused) => typeof members["request_id"] === "string" ? members["request_id"] : null

/** One fault of a request that did not decode. */
interface Fault {
  readonly loc: ReadonlyArray<string | number>
  readonly msg: string
}

const faultsOf = ({ members: { detail } }: Refused) => Array.isArray(detail) ? detail as ReadonlyArray<Fault> : []

/** Shows a refusal; `retry` asks again. */
export const Failure = ({ of, retry }: {
  readonly of: Signal<Refused | null>
  readonly retry?: () => unknown
}): JSX.Element | null => {
  const refused = of.value
  if (refused === null || asksSignIn(refused)) return null
  const request = requestOf(refused)
  const faults = faultsOf(refused)
  return (
    <div class="failure" role="alert">
      <p>{refused.code === "not_found" ? "There is no such thing, or it is not yours." : refused.message}</p>
      {faults.length === 0
        ? null
        : <ul>{faults.map(({ loc, msg }, n) => <li key={n}>{loc.slice(1).join(" · ")}: {msg}</li>)}</ul>}
      {request === null ? null : (
        <p class="note">
          Request <code>{request}</code>
        </p>
      )}
      {retry === undefined ? null : <button type="button" onClick={() => void retry()}>Try again</button>}
    </div>
  )
}

/** The fault of one field, by the last part of its place. */
export const faultOf = (refused: Refused | null, name: string): string | null =>
  refused === null ? null : faultsOf(refused).find(({ loc }) => loc.includes(name))?.msg ?? null
