/** Complete lines of the directory, with the fields that a test sets. */

/** A stable id. */
export const uuid = (n: number) => `00000000-0000-4000-8000-${n.toString(16).padStart(12, "0")}`

let ids = 1
/** An id that this test file has not used. */
export const fresh = () => uuid(ids++)

export const account = (id: string, version: number, fields: object = {}) =>
  JSON.stringify({
    kind: "account",
    id,
    version,
    email: "a@example.com",
    name: "A",
    plan: "free",
    platform_admin: false,
    status: "active",
    ...fields,
  })

export const domain = (id: string, version: number, account_id: string, fields: object = {}) =>
  JSON.stringify({
    kind: "domain",
    id,
    version,
    name: "d.example",
    account_id,
    workspace_id: uuid(0xffff),
    verified_at: null,
    dkim_selector: "s1",
    ...fields,
  })

export const credential = (id: string, version: number, domain_id: string, account_id: string, fields: object = {}) =>
  JSON.stringify({ kind: "smtp_credential", id, version, domain_id, account_id, username: "u", ...fields })

export const removal = (kind: string, id: string, version: number) =>
  JSON.stringify({ kind, id, version, removed: true })
