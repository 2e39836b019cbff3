/** The notifications of an account, live, and the channels that send them on. */
import type { JSX } from "preact"
import { useEffect } from "preact/hooks"
import { useAction } from "../Action.ts"
import { ask } from "../contract/Ask.ts"
import { setQuery } from "../Location.ts"
import type { AnswerOf } from "../contract/EndpointTypes.ts"
import { announce } from "../parts/Announce.tsx"
import { Badge, type Tone } from "../parts/Badge.tsx"
import { Failure } from "../parts/Failure.tsx"
import { CheckField, Do, SelectField } from "../parts/Form.tsx"
import { emptyPage, NextPage, pageSize } from "../parts/NextPage.tsx"
import { Page } from "../parts/Page.tsx"
import { Table } from "../parts/Table.tsx"
import { filterOf } from "../parts/TextFilter.tsx"
import { When } from "../parts/When.tsx"
import { type Resource, useResource } from "../Resource.ts"

type List = AnswerOf<"listNotifications">
type Notification = List["items"][number]

const categories = [["alerts", "Alerts"], ["sends", "Sends"], ["team", "Team"], ["domains", "Domains"]] as const
const channels = [["web", "Here"], ["email", "Email"], ["slack", "Slack"]] as const

const severities: Readonly<Record<Notification["severity"], readonly [tone: Tone, words: string]>> = {
  info: ["off", "info"],
  success: ["good", "success"],
  warning: ["warn", "warning"],
  critical: ["bad", "critical"],
}

/** Asks again whenever the stream says that something changed; the browser itself connects anew. */
const useStream = (reload: () => unknown): void =>
  useEffect(() => {
    const stream = new EventSource("/v1/notifications/stream")
    for (const event of ["notification", "read-all", "counts", "reset"]) {
      stream.addEventListener(event, () => void reload())
    }
    return () => stream.close()
  }, [reload])

const Inbox = ({ list }: { readonly list: Resource<List> }): JSX.Element => {
  const action = useAction()
  const read = async (notification_id: string) => {
    if (await action.run(() => ask("readNotification", { params: { notification_id } }))) await list.reload()
  }
  const readAll = async () => {
    if (!await action.run(() => ask("readAllNotifications", {}))) return
    announce("All are read.")
    await list.reload()
  }
  const found = list.value.value
  return (
    <>
      <Failure of={list.failure} retry={list.reload} />
      <Failure of={action.failure} />
      {found === undefined ? null : (
        <>
          <div class="head">
            <p aria-live="polite">{found.unread} unread of {found.total}</p>
            <Do action={action} disabled={found.unread === 0} onDo={readAll}>Mark all as read</Do>
          </div>
          <Table
            caption="Notifications, newest first"
            rows={found.items}
            keyOf={({ id }) => id}
            empty={emptyPage("after", "No notification fits. What happens to your mail and domains is told here.")}
            columns={[
              {
                head: "Notification",
                cell: ({ body, count, href, read_at, title }) => (
                  <>
                    <a href={href} target="_self">{read_at === null ? <strong>{title}</strong> : title}</a>
                    <div class="note">
                      {body}
                      {count === 1 ? "" : ` ${count} times.`}
                    </div>
                  </>
                ),
              },
              {
                head: "Kind",
                cell: ({ severity }) => <Badge tone={severities[severity][0]}>{severities[severity][1]}</Badge>,
              },
              { head: "When", cell: ({ created_at }) => <When at={created_at} /> },
              {
                head: "Read",
                cell: ({ id, read_at }) =>
                  read_at === null
                    ? <Do action={action} onDo={() => read(id)}>Mark as read</Do>
                    : <When at={read_at} />,
              },
            ]}
          />
          <NextPage last={found.next_after_id ?? null} name="after" words="notifications" />
        </>
      )}
    </>
  )
}

const Preferences = (): JSX.Element => {
  const preferences = useResource("preferences", (signal) => ask("getNotificationPreferences", {}, { signal }))
  const action = useAction()
  const set = async (category: string, channel: string, on: boolean) => {
    const payload = { preferences: { [category]: { [channel]: on } } }
    if (await action.run(() => ask("putNotificationPreferences", { payload }))) announce("Your choice is kept.")
    await preferences.reload()
  }
  const chosen = preferences.value.value?.preferences
  return (
    <section aria-labelledby="preferences">
      <h2 id="preferences">Where you are told</h2>
      <Failure of={preferences.failure} retry={preferences.reload} />
      <Failure of={action.failure} />
      {chosen === undefined ? null : (
        <Table
          caption="Categories of notifications and their channels"
          rows={categories}
          keyOf={([category]) => category}
          empty=""
          columns={[
            { head: "Category", cell: ([, words]) => words },
            ...channels.map(([channel, head]) => ({
              head,
              cell: ([category, words]: (typeof categories)[number]) => (
                <CheckField
                  label={<span class="hidden">{words}: {head}</span>}
                  checked={chosen[category][channel]}
                  onChange={(on) => void set(category, channel, on)}
                />
              ),
            })),
          ]}
        />
      )}
    </section>
  )
}

const Notifications = (): JSX.Element => {
  const category = filterOf("category")
  const unread = filterOf("unread") === "true"
  const after_id = filterOf("after")
  const list = useResource(
    `notifications ${category} ${unread} ${after_id}`,
    (signal) => ask("listNotifications", { query: { category, unread, after_id, limit: pageSize } }, { signal }),
  )
  useStream(list.reload)
  return (
    <Page title="Notifications">
      <div class="filters">
        <SelectField
          label="Category"
          value={category ?? ""}
          options={[["", "All"], ...categories]}
          onChange={(category) => setQuery({ category, after: undefined })}
        />
        <SelectField
          label="Show"
          value={unread ? "true" : ""}
          options={[["", "All"], ["true", "Unread"]]}
          onChange={(unread) => setQuery({ unread, after: undefined })}
        />
      </div>
      <Inbox list={list} />
      <Preferences />
    </Page>
  )
}
export default Notifications
