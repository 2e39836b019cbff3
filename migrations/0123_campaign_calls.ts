/** Those who answer in a campaign hear that it waits for them: its call, beside those of reviews. */
const statements: ReadonlyArray<string> = [
  `alter table signature_calls drop constraint signature_calls_kind_check`,
  `alter table signature_calls add constraint signature_calls_kind_check
    check (kind in ('policy', 'access', 'service', 'campaign')) not valid`,
]

export default statements
