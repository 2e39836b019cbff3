/** An operator's actions on a job that failed, or whose outcome is unknown. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { useDraft } from "../Drafts.ts"
import { DialogButton } from "./Dialog.tsx"
import { TextField } from "./Form.tsx"
import { ReasonDialog } from "./ReasonDialog.tsx"
import { ReasonForm } from "./ReasonForm.tsx"

export type Job = AnswerOf<"projectDiagnostics">["failed"][number]

/** `client.disable` as people say it. */
export const jobWords = (kind: string): string => kind.replaceAll(/[._]/g, " ")

interface OnJob {
  readonly job: Job
  /** Asks for the jobs anew. */
  readonly done: () => unknown
}

/** The form that names the client which a write made at the provider. The token is a secret, so it is no draft. */
const NameClient = ({ close, done, job: { job_id } }: OnJob & { readonly close: () => void }): JSX.Element => {
  const action = useAction()
  const draft = useDraft(`client of ${job_id}`, { client_id: "", address: "" })
  const token = useSignal("")
  const { address, client_id } = draft.value.value
  return (
    <ReasonForm
      name={`repair ${job_id}`}
      action={action}
      close={close}
      done={done}
      ready={client_id !== ""}
      submit="Name the client"
      said="The client is checked, and the job has ended."
      write={(reason, key) =>
        ask("repairJob", {
          params: { job_id },
          payload: {
            client_id,
            registration_client_uri: address || null,
            registration_access_token: token.value || null,
            reason,
          },
        }, { key })}
    >
      <p>The provider is asked for the client before anything is recorded.</p>
      <TextField
        action={action}
        label="Client ID"
        name="client_id"
        value={client_id}
        onInput={(client_id) => draft.set({ client_id })}
      />
      <TextField
        action={action}
        label="Registration address"
        name="registration_client_uri"
        type="url"
        required={false}
        hint="Where the provider manages the client, if it gave an address."
        value={address}
        onInput={(address) => draft.set({ address })}
      />
      <TextField
        action={action}
        label="Registration access token"
        name="registration_access_token"
        required={false}
        hint="It is kept sealed, and never shown again."
        value={token.value}
        onInput={(text) => {
          token.value = text
        }}
      />
    </ReasonForm>
  )
}

export const JobActions = ({ done, job }: OnJob): JSX.Element => {
  const finds = job.state === "ambiguous"
  const words = finds ? "Ask the provider" : "Send again"
  const { job_id } = job
  const title = `${words}: ${jobWords(job.kind)}`
  return (
    <div class="actions">
      <ReasonDialog
        name={`job ${job_id}`}
        label={`${words}…`}
        title={title}
        done={done}
        submit={words}
        said="The job goes on."
        write={(reason, key) =>
          ask(finds ? "reconcileJob" : "retryJob", { params: { job_id }, payload: { reason } }, { key })}
      >
        <p>
          {finds
            ? "The provider is asked, by the saved reference, for the outcome of the write."
            : "The write that failed is sent to the provider again."}
        </p>
      </ReasonDialog>
      {job.state !== "failed" && job.last_error_code !== "unfindable"
        ? null
        : (
          <DialogButton name={`repair ${job_id}`} label="Name the client…" title="Name the client that the write made">
            {(close) => <NameClient close={close} done={done} job={job} />}
          </DialogButton>
        )}
    </div>
  )
}
