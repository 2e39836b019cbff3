/** The proof that a decision is in the transparency log: what a person needs to verify it without this program. */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import { useResource } from "../Resource.ts"
import { CopyButton } from "./Copy.tsx"
import { DialogButton } from "./Dialog.tsx"
import { Failure } from "./Failure.tsx"

interface Proving {
  readonly record_id: string
  /** Whether the visitor asks as the one who decided, and not as an operator or auditor. */
  readonly own: boolean
}

const Proof = ({ close, own, record_id }: Proving & { readonly close: () => void }): JSX.Element => {
  const proof = useResource(
    `${own ? "own proof" : "proof"} ${record_id}`,
    (signal) => ask(own ? "proveOwnDecision" : "proveDecision", { params: { record_id } }, { signal }),
  )
  const found = proof.value.value
  const unknown = proof.failure.value?.code === "not_found"
  return (
    <>
      {unknown
        ? <p>This record is not of a decision, or was made before the log.</p>
        : <Failure of={proof.failure} retry={proof.reload} />}
      {found === undefined ? null : (
        <>
          <p>
            {found.index === null
              ? "No checkpoint has the decision yet: ask again in a second."
              : `The decision is entry ${found.index} of the log.`}
          </p>
          <pre tabIndex={0} aria-label="The proof">{found.proof ?? JSON.stringify(found, null, 2)}</pre>
        </>
      )}
      <div class="actions">
        {found === undefined
          ? null
          : <CopyButton text={JSON.stringify(found, null, 2)} label="Copy with its record and salt" />}
        {found?.index === null ? <button type="button" onClick={() => void proof.reload()}>Ask again</button> : null}
        <button type="button" onClick={close}>Close</button>
      </div>
    </>
  )
}

/** Actions that are decisions (docs/transparency.md). */
const decisions =
  /^(access|access-review|service-grant|policy-review|enrollment|link-request|project|rollout|domain-transfer|signing-key|recovery)\.|-request\.|^installation\.opened$/

/** A button for a record that may be one of a decision. */
export const DecisionProof = ({ of: { action, id, outcome }, own = false }: {
  readonly of: { readonly id: string; readonly action: string; readonly outcome: string }
  readonly own?: boolean
}): JSX.Element | null =>
  outcome !== "done" || !decisions.test(action)
    ? null
    : (
      <DialogButton name={`proof ${id}`} label="Proof…" title="Proof of the decision" reads>
        {(close) => <Proof close={close} own={own} record_id={id} />}
      </DialogButton>
    )
