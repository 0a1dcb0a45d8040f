/** 30 s: many times a sample; whoever has not finished by then has lost something. */
export const PATIENCE_MS = 30_000

/** Rejects when the work takes longer than any sample can. */
export async function patiently<T>(work: Promise<T>, what: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const tooLong = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Still waiting: ${what()}`)), PATIENCE_MS)
  })
  try {
    return await Promise.race([work, tooLong])
  } finally {
    clearTimeout(timer)
  }
}
