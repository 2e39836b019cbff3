/**
 * Linking another identity of one's own: a sign-in as that identity proves it, by the server, and leads back to this page
 * with the proof; the visitor then asks for the link, which an operator decides.
 */
import type { JSX } from "preact"
import { ask } from "../contract/Ask.ts"
import type { RequestOf } from "../contract/EndpointTypes.ts"
import { setQuery } from "../Location.ts"
import { DialogButton } from "../parts/Dialog.tsx"
import { ReasonForm } from "../parts/ReasonForm.tsx"
import { filterOf } from "../parts/TextFilter.tsx"
import { session } from "../Visitor.ts"

type ProofId = RequestOf<"createLinkRequest">["payload"]["proof_id"]

/** The way to the sign-in of the other identity. */
const Begin = (): JSX.Element => (
  <DialogButton name="link" label="Link another identity…" title="Link another identity of yours">
    {(close) => (
      <>
        <p>
          Sign in as the other identity: that proves it is yours. Where your own sign-in is older than five minutes you
          are asked for it first, and then press this once more. Then you ask for the link, an operator decides, and the
          other side is told by mail and may object for a day. Afterwards either identity signs you in.
        </p>
        <ul class="choices">
          {session.value?.issuers.map(({ issuer, name }) => (
            <li key={issuer}>
              <a class="button main" href={`/console/sign-in?${new URLSearchParams({ issuer, link: "true" })}`}>
                Sign in with {name}
              </a>
              <p class="note">{new URL(issuer).host}</p>
            </li>
          ))}
        </ul>
        <button type="button" onClick={close}>Cancel</button>
      </>
    )}
  </DialogButton>
)

export const LinkIdentity = (): JSX.Element => {
  const proof = filterOf("link_proof")
  if (proof === undefined) {
    return (
      <div class="actions">
        <Begin />
      </div>
    )
  }
  const leave = () => setQuery({ link_proof: undefined })
  return (
    <div class="card" role="status">
      <p>
        You signed in as the other identity. Ask for the link within ten minutes: until then nothing has changed.
      </p>
      <div class="actions">
        <DialogButton name="link request" kind="main" label="Ask for the link…" title="Ask for the link">
          {(close) => (
            <ReasonForm
              name="link request"
              close={close}
              done={leave}
              submit="Ask for the link"
              said="The link is asked for. It is among your requests."
              write={(reason, key) =>
                ask("createLinkRequest", { payload: { proof_id: proof as ProofId, reason } }, { key })}
            >
              <p>
                Once an operator has approved it, and no one has objected for a day, both identities sign you in, and
                what belongs to the other one is yours. It cannot be undone.
              </p>
            </ReasonForm>
          )}
        </DialogButton>
        <button type="button" onClick={leave}>Not now</button>
      </div>
    </div>
  )
}
