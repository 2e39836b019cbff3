/**
 * Whether an approval would be accepted now, asked of the API before the signer writes a reason: a dry run changes nothing,
 * and is answered with the very refusal that the approval would get.
 */
import type { JSX } from "preact"
import { type Resource, useResource } from "../Resource.ts"
import { Failure } from "./Failure.tsx"

/** Stands for the reason that is not written yet. */
const reason = "preview of an approval"

interface Preview {
  /** Asks by a dry run of the approval; undefined where there is nothing to ask. */
  readonly asked: ((reason: string, key: string, signal: AbortSignal) => Promise<unknown>) | undefined
  /** Names what is approved, and how. */
  readonly name: string
}

export const useApprovalPreview = ({ asked, name }: Preview): Resource<boolean> =>
  useResource(`preview ${name}`, async (signal) => {
    if (asked === undefined) return false
    await asked(reason, crypto.randomUUID(), signal)
    return true
  })

/** Whether a rule refuses it; a server that does not answer refuses nothing. */
export const isRefused = ({ failure, loading }: Resource<boolean>): boolean =>
  !loading.value && [403, 404, 409, 412, 422].includes(failure.value?.status ?? 0)

export const ApprovalPreview = ({ of }: { readonly of: Resource<boolean> }): JSX.Element | null => {
  if (of.loading.value) return <p class="note">Asking whether it would be accepted…</p>
  if (of.failure.value !== null) {
    return (
      <div>
        {isRefused(of) ? <p>It would be refused now:</p> : null}
        <Failure of={of.failure} retry={of.reload} />
      </div>
    )
  }
  return of.value.value === true ? <p class="note" role="status">It would be accepted now.</p> : null
}
