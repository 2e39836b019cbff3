/** Administrators are told of service grants that wait for them. */
const statements: ReadonlyArray<string> = [
  `alter table signature_calls drop constraint signature_calls_kind_check`,
  `alter table signature_calls add constraint signature_calls_kind_check
    check (kind in ('policy', 'access', 'service')) not valid`,
]

export default statements
