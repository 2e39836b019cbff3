/** `GET /dev/mailbox` and `/dev/mailbox/{id}`: the mails of the dev mailbox, behind the dev key. */
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { type Html, html } from "../../../services/platform/mail/Html.ts"
import { message, newest } from "../../embedded/DevMailbox.ts"
import type { ReadMail } from "../../embedded/Eml.ts"
import { guarded } from "./DevKey.ts"
import { devStyle, devStylePath, page } from "./DevPage.ts"
import { refusing } from "../edge/RequestOutcome.ts"

const shown = 200

const list = (home: string) => {
  const rows = newest(home, shown).map(({ id, mail }) =>
    html`
      <tr>
        <td><a href="/dev/mailbox/${id}">${mail.subject || "(no subject)"}</a></td>
        <td>${mail.to}</td>
        <td>${mail.date}</td>
      </tr>
    `
  )
  const table = html`<table><tr><th>Subject</th><th>To</th><th>Sent</th></tr>${rows}</table>`
  return page({ title: "Dev mailbox", body: rows.length === 0 ? html`<p>No mail yet.</p>` : table })
}

/** The text of a mail, with links on its http and https addresses. */
const linked = (text: string): ReadonlyArray<Html> =>
  text.split(/(https?:\/\/[^\s<>"]+)/).map((part, i) =>
    i % 2 === 1 ? html`<a href="${part}">${part}</a>` : html`${part}`
  )

const nothing = page({
  status: 404,
  title: "No such message",
  body: html`<p><a href="/dev/mailbox">All messages</a></p>`,
})

const whole = (mail: ReadMail | null) =>
  mail === null ? refusing("not_found", nothing) : Effect.succeed(
    page({
      title: mail.subject || "(no subject)",
      body: html`
        <p><a href="/dev/mailbox">All messages</a></p>
        <table>
          <tr>
            <th>From</th>
            <td>${mail.from}</td>
          </tr>
          <tr>
            <th>To</th>
            <td>${mail.to}</td>
          </tr>
          <tr>
            <th>Sent</th>
            <td>${mail.date}</td>
          </tr>
          <tr>
            <th>Message-ID</th>
            <td>${mail.messageId}</td>
          </tr>
        </table>
        <pre>${linked(mail.text)}</pre>
        <details>
          <summary>HTML part, as text</summary>
          <pre>${mail.html}</pre>
        </details>
      `,
    }),
  )

export const layer = (home: string) =>
  Layer.mergeAll(
    HttpRouter.add("GET", "/dev/mailbox", guarded(Effect.sync(() => list(home)))),
    HttpRouter.add(
      "GET",
      "/dev/mailbox/:id",
      guarded(Effect.flatMap(HttpRouter.params, ({ id }) => whole(message(home, id ?? "")))),
    ),
    HttpRouter.add(
      "GET",
      devStylePath,
      Effect.sync(() => HttpServerResponse.text(devStyle, { contentType: "text/css; charset=utf-8" })),
    ),
  )
