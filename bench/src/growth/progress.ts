/** Reports progress where it does not mix with the results. */
export function progress(text: string): void {
  process.stderr.write(`growth: ${text}\n`)
}
