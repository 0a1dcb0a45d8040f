/** Escapes a text like the inside of a JSON string: PostgreSQL stores no zero character and no lone surrogate. */
export const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

export const unescaped = (text: string): string => JSON.parse(`"${text}"`) as string
