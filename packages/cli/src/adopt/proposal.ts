/** What `redrive init` proposes for a source file with a consumer. */
export type Proposal =
  | { readonly kind: 'change'; readonly after: string }
  | { readonly kind: 'by hand'; readonly reasons: readonly Reason[] }

/** Why a program must not change the file. */
export interface Reason {
  readonly line: number
  readonly text: string
}
