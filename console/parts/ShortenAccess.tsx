/** The form that brings the end of an Access forward. */
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { DialogButton } from "./Dialog.tsx"
import { TextField } from "./Form.tsx"
import { ReasonForm } from "./ReasonForm.tsx"
import { When } from "./When.tsx"

interface Shown {
  readonly of: AnswerOf<"explainAccess">
  readonly done: () => unknown
}

const ShortenForm = ({ close, done, of }: Shown & { readonly close: () => void }): JSX.Element => {
  const { access_id, ends_at, institution_id, versions } = of
  const action = useAction()
  const draft = useDraft(`end of ${access_id}`, { until: "" })
  const { until } = draft.value.value
  return (
    <ReasonForm
      action={action}
      name={`shorten ${access_id}`}
      close={close}
      done={done}
      kind="stop"
      ready={until !== ""}
      submit="Bring the end forward"
      said="The Access ends earlier."
      write={(reason, key) =>
        ask("shortenAccess", {
          params: { institution_id, access_id },
          payload: { expected_version: versions[0]!.access_version, ends_at: new Date(until).toISOString(), reason },
        }, { key })}
    >
      <p>
        {ends_at === null ? "It has no end yet." : (
          <>
            It ends <When at={ends_at} exact />.
          </>
        )} Products are told when it ends. A later end takes a new request.
      </p>
      <TextField
        action={action}
        label="Ends at"
        name="ends_at"
        type="datetime-local"
        value={until}
        onInput={(until) => draft.set({ until })}
      />
    </ReasonForm>
  )
}

export const ShortenAccess = (shown: Shown): JSX.Element => (
  <DialogButton
    name={`shorten ${shown.of.access_id}`}
    label="Bring the end forward…"
    title="Let the Access end earlier"
  >
    {(close) => <ShortenForm {...shown} close={close} />}
  </DialogButton>
)
