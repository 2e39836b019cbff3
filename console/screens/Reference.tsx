/**
 * The operations of the API: found by words, described, with a recorded example each, and a form that sends the request in
 * the visitor's own session. A read is sent at once; a write asks first, and has an idempotency key.
 */
import type { JSX } from "preact"
import { CopyButton } from "../parts/Copy.tsx"
import { Failure } from "../parts/Failure.tsx"
import { Filters } from "../parts/Filters.tsx"
import { Page } from "../parts/Page.tsx"
import { filterOf, TextFilter } from "../parts/TextFilter.tsx"
import { here } from "../Location.ts"
import { found, type Operation, operationsOf } from "../reference/ReferenceOperations.ts"
import { TryIt } from "../reference/TryIt.tsx"
import { refusalOf, useResource } from "../Resource.ts"

/** The server's own document, which the API does not count among its operations. */
const fetched = async (path: string, signal: AbortSignal) => {
  const response = await fetch(path, { signal })
  if (!response.ok) throw refusalOf(`${path} is ${response.status}`)
  return await response.json()
}

interface Message {
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
}

const textOf = (line: string, { body, headers }: Message): string =>
  [
    line,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(body === undefined ? [] : ["", typeof body === "string" ? body : JSON.stringify(body, null, 2)]),
  ].join("\n")

const Example = ({ of }: { readonly of: Operation }): JSX.Element => {
  const example = useResource(`example ${of.id}`, (signal) => fetched(`/v1/openapi/examples/${of.id}.json`, signal))
  const { answer, request } = example.value.value ?? {}
  if (request === undefined) return <Failure of={example.failure} retry={example.reload} />
  const messages = [
    ["The recorded request", textOf(`${request.method} ${request.path}`, request)],
    ["Its answer", textOf(`${answer.status}`, answer)],
  ] as const
  return (
    <>
      <p class="note">Recorded in a run of the tests; a list shows two items at most.</p>
      {messages.map(([label, text]) => (
        <div key={label}>
          <h3>{label}</h3>
          <pre tabIndex={0} aria-label={label}>{text}</pre>
        </div>
      ))}
    </>
  )
}

const Parameters = ({ of }: { readonly of: Operation }): JSX.Element => (
  <dl>
    {of.parameters.map(({ description, in: place, name, required }) => (
      <div key={place + name}>
        <dt>
          <code>{name}</code> <span class="note">{place}{required ? ", required" : ""}</span>
        </dt>
        {description === "" ? null : <dd>{description}</dd>}
      </div>
    ))}
  </dl>
)

const addressOf = (id: string | undefined): string => {
  const url = new URL(here.value)
  if (id === undefined) url.searchParams.delete("operation")
  else url.searchParams.set("operation", id)
  return url.pathname + url.search
}

const One = ({ of }: { readonly of: Operation }): JSX.Element => (
  <Page title={of.summary} up={[addressOf(undefined), "API reference"]}>
    <p>
      <code>{of.method} {of.path}</code> <CopyButton text={of.path} label="Copy path" />
    </p>
    <p>{of.description.replaceAll("`", "")}</p>
    {of.parameters.length === 0 ? null : (
      <section>
        <h2>Parameters</h2>
        <Parameters of={of} />
      </section>
    )}
    <section>
      <h2>Answers</h2>
      <ul>
        {of.answers.map(([status, description]) => (
          <li key={status}>
            <code>{status}</code> {description}
          </li>
        ))}
      </ul>
    </section>
    <section>
      <h2>Example</h2>
      <Example of={of} />
    </section>
    <section>
      <h2>Try it</h2>
      <TryIt of={of} />
    </section>
  </Page>
)

const All = ({ operations }: { readonly operations: ReadonlyArray<Operation> }): JSX.Element => {
  const shown = operations.filter((one) => found(one, filterOf("words") ?? ""))
  const tags = [...new Set(shown.map(({ tag }) => tag))]
  return (
    <>
      <p role="status">{shown.length} of {operations.length} operations</p>
      {tags.map((tag) => (
        <section key={tag}>
          <h2>{tag}</h2>
          <ul class="operations">
            {shown.filter((one) => one.tag === tag).map(({ id, method, path, summary }) => (
              <li key={id}>
                <a href={addressOf(id)}>{summary}</a> <code>{method} {path}</code>
              </li>
            ))}
          </ul>
        </section>
      ))}
    </>
  )
}

const Reference = (): JSX.Element => {
  const document = useResource("openapi", (signal) => fetched("/v1/openapi.json", signal))
  const operations = document.value.value === undefined ? undefined : operationsOf(document.value.value)
  const chosen = operations?.find(({ id }) => id === filterOf("operation"))
  if (chosen !== undefined) return <One key={chosen.id} of={chosen} />
  return (
    <Page title="API reference">
      <p>
        Every operation of the API, also <a href="/v1/docs">as one page</a> and as an{" "}
        <a href="/v1/openapi.json">OpenAPI document</a>.
      </p>
      <Filters names={["words"]}>
        <TextFilter label="Words" name="words" placeholder="deliveries retry" />
      </Filters>
      <Failure of={document.failure} retry={document.reload} />
      {operations === undefined ? null : <All operations={operations} />}
    </Page>
  )
}
export default Reference
