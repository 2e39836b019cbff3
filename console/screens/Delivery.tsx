/** One delivery: what was sent, each attempt with its answer and time, and sending it again. */
import { useSignal } from "@preact/signals"
import type { JSX } from "preact"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import type { Params } from "../Location.ts"
import { announce } from "../parts/Announce.tsx"
import { AuditLink } from "../parts/AuditLink.tsx"
import { CopyButton } from "../parts/Copy.tsx"
import { DeliveryState } from "../parts/DeliveryState.tsx"
import { DialogButton } from "../parts/Dialog.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Do, Form } from "../parts/Form.tsx"
import { quoted } from "../parts/Quoted.ts"
import { Page } from "../parts/Page.tsx"
import { When } from "../parts/When.tsx"
import { useRefresh } from "../Refresh.ts"
import { type Resource, useResource } from "../Resource.ts"
import { auditReader, session } from "../Visitor.ts"

type Delivery = AnswerOf<"getDelivery">
type Request = NonNullable<Delivery["request"]>

/** Headers that curl is not to send: what it sets by itself. */
const own = new Set(["user-agent"])

/** The same POST, with a placeholder for each signature: only the program can make them. */
const curlOf = ({ body, headers, url }: Request): string =>
  [
    `curl -X POST ${quoted(url ?? "")}`,
    ...Object.entries(headers).filter(([name]) => !own.has(name.toLowerCase())).map(([name, value]) =>
      `-H ${quoted(`${name}: ${/signature/i.test(name) ? "<signature>" : value}`)}`
    ),
    `--data-raw ${quoted(body)}`,
  ].join(" \\\n  ")

const Fields = ({ of }: { readonly of: Readonly<Record<string, string>> }): JSX.Element => (
  <dl>
    {Object.entries(of).map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>
          <code>{value}</code>
        </dd>
      </div>
    ))}
  </dl>
)

/** The answer to an attempt, where it is kept. */
const Answer = (
  { of: { response_body, response_headers } }: { readonly of: Delivery["attempts"][number] },
): JSX.Element | null =>
  response_body === null && response_headers === null ? null : (
    <details>
      <summary>Its answer</summary>
      {response_headers === null ? null : <Fields of={response_headers} />}
      {response_body === null ? null : <pre tabIndex={0} aria-label="The body of this answer">{response_body}</pre>}
    </details>
  )

const Attempts = ({ of: { attempts } }: { readonly of: Delivery }): JSX.Element => (
  <section aria-labelledby="attempts">
    <h2 id="attempts">Attempts</h2>
    {attempts.length === 0 ? <div class="empty">No attempt was made yet.</div> : (
      <ol class="steps">
        {attempts.map((one) => (
          <li
            key={`${one.cycle} ${one.attempt} ${one.started_at}`}
            class={one.response_status !== null && one.response_status >= 200 && one.response_status < 300
              ? "past"
              : "failed"}
          >
            <strong>{one.response_status ?? "No answer"}</strong> after {one.duration_ms} ms,{" "}
            <When at={one.started_at} exact />
            {one.cycle > 1 ? <span class="note">, sent again the {one.cycle - 1}. time</span> : null}
            {one.error === null ? null : <div class="note">{one.error}</div>}
            <details>
              <summary>Its request headers</summary>
              <Fields of={one.request_headers} />
            </details>
            <Answer of={one} />
          </li>
        ))}
      </ol>
    )}
  </section>
)

const Headers = ({ of }: { readonly of: Request }): JSX.Element => (
  <details>
    <summary>Headers of the last attempt</summary>
    <Fields of={of.headers} />
    <p class="note">Signatures are not kept: an attempt makes them anew, with the secret of its time.</p>
  </details>
)

const Bodies = ({ of }: { readonly of: Delivery }): JSX.Element => {
  const raw = useSignal(false)
  const { request } = of
  const pretty = JSON.stringify(of.payload, null, 2)
  const shown = raw.value && request !== null ? request.body : pretty
  return (
    <>
      <section aria-labelledby="payload">
        <div class="head">
          <h2 id="payload">Sent</h2>
          <div class="actions">
            {request === null ? null : (
              <button
                type="button"
                class="small"
                aria-pressed={raw.value}
                onClick={() => void (raw.value = !raw.value)}
              >
                As it was sent
              </button>
            )}
            <CopyButton text={shown} label="Copy body" />
            {request === null ? null : <CopyButton text={curlOf(request)} label="Copy as curl" />}
          </div>
        </div>
        <pre tabIndex={0} aria-label="The body that was sent">{shown}</pre>
        {request === null ? null : <Headers of={request} />}
      </section>
      {of.response_body === null || of.response_body === "" ? null : (
        <section aria-labelledby="answer">
          <h2 id="answer">Last answer</h2>
          <pre tabIndex={0} aria-label="The body of the last answer">{of.response_body}</pre>
        </section>
      )}
    </>
  )
}

/** Asks before a delivery is given up. */
const CancelForm = ({ close, done, of }: {
  readonly of: Delivery
  readonly close: () => void
  readonly done: () => unknown
}): JSX.Element => {
  const action = useAction()
  const cancel = async () => {
    const asked = { params: { delivery_id: of.id }, headers: {} }
    if (!await action.run((key) => ask("cancelDelivery", asked, { key }))) return
    announce("It is cancelled: no further attempt is made.")
    close()
    await done()
  }
  return (
    <Form action={action} close={close} kind="stop" submit="Cancel the delivery" leave="Keep trying" write={cancel}>
      <p>No further attempt is made to deliver this event. You can send it again later, from this page.</p>
    </Form>
  )
}

const One = ({ of, resource }: { readonly of: Delivery; readonly resource: Resource<Delivery> }): JSX.Element => {
  const action = useAction()
  useRefresh(resource, of.status === "pending" || of.status === "retrying" ? 2 : 60)
  const again = async () => {
    if (!await action.run((key) => ask("replayDelivery", { params: { delivery_id: of.id } }, { key }))) return
    announce("It is sent again.")
    await resource.reload()
  }
  const retry = async () => {
    const asked = { params: { delivery_id: of.id }, headers: {} }
    if (!await action.run((key) => ask("retryDelivery", asked, { key }))) return
    announce("The next attempt is made now.")
    await resource.reload()
  }
  const waits = of.status === "pending" || of.status === "retrying"
  return (
    <Page
      title={of.event_type}
      up={["/console/deliveries", "Deliveries"]}
      actions={waits
        ? (
          <>
            <Do action={action} kind="main" onDo={retry}>Try now</Do>
            <DialogButton name={`cancel ${of.id}`} kind="stop" label="Cancel the delivery…" title="Cancel the delivery">
              {(close) => <CancelForm of={of} close={close} done={resource.reload} />}
            </DialogButton>
          </>
        )
        : <Do action={action} kind="main" onDo={again}>Send again</Do>}
    >
      <Failure of={action.failure} />
      <p>
        <DeliveryState of={of.status} />
        {of.next_retry_at === null ? null : (
          <>
            {" "}
            next try <When at={of.next_retry_at} exact />
          </>
        )}
      </p>
      <dl>
        <div>
          <dt>To</dt>
          <dd>
            <a href={`/console/webhooks/${of.webhook_id}`}>{of.endpoint_url ?? "its webhook"}</a>
          </dd>
        </div>
        <div>
          <dt>Created</dt>
          <dd>
            <When at={of.created_at} exact />
          </dd>
        </div>
        {of.error === null ? null : (
          <div>
            <dt>Error</dt>
            <dd>{of.error}</dd>
          </div>
        )}
        <div>
          <dt>Delivery</dt>
          <dd>
            <code>{of.id}</code> <CopyButton text={of.id} label="Copy id" />{" "}
            {session.value !== undefined && auditReader(session.value) ? <AuditLink id={of.id} /> : null}
          </dd>
        </div>
      </dl>
      <Attempts of={of} />
      <Bodies of={of} />
    </Page>
  )
}

const DeliveryPage = ({ params }: { readonly params: Params }): JSX.Element => {
  const delivery_id = params["delivery_id"]!
  const delivery = useResource(
    `delivery ${delivery_id}`,
    (signal) => ask("getDelivery", { params: { delivery_id } }, { signal }),
  )
  const one = delivery.value.value
  return one !== undefined
    ? <One of={one} resource={delivery} />
    : (
      <Page title="Delivery" up={["/console/deliveries", "Deliveries"]}>
        <Failure of={delivery.failure} retry={delivery.reload} />
      </Page>
    )
}
export default DeliveryPage
