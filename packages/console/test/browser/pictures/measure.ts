import type { Page } from 'playwright-core'

export interface Measured {
  /** The picture with one pixel for each cell, as lossless WebP: some kilobytes. */
  readonly small: Buffer
  /** Columns × rows of cells. */
  readonly size: string
  readonly storedSize: string
  /** Column and row of each cell that differs. */
  readonly changed: readonly (readonly [number, number])[]
  /** The picture with a frame around each of these cells. */
  readonly marked: Buffer
}

/**
 * Reduces a picture to the mean colour of each cell of 8 × 8 px, and compares it with a stored one. A mean hides how the edge of
 * a letter is drawn, and shows a moved line, another colour or another word.
 */
export async function measure(tab: Page, shot: Buffer, stored?: Buffer): Promise<Measured> {
  const given = { shot: shot.toString('base64'), stored: stored?.toString('base64') }
  const { small, marked, ...rest } = await tab.evaluate(measureHere, given)
  return { ...rest, small: Buffer.from(small, 'base64'), marked: Buffer.from(marked, 'base64') }
}

/** Runs in the tab, so it uses nothing from this file. */
async function measureHere({ shot, stored }: { shot: string; stored: string | undefined }) {
  const CELL = 8
  /** Steps of 8 in 256 levels hide rounding, and make the file small. */
  const STEP = 8
  /** A line of 1 px that moved into the next cell changes the mean by 24 or more. */
  const LEAST = 24

  async function read(type: string, text: string) {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
    const image = await createImageBitmap(new Blob([bytes], { type }))
    const { width, height } = image
    const canvas = new OffscreenCanvas(width, height)
    const context = canvas.getContext('2d', { willReadFrequently: true })
    if (context === null) throw new Error('The browser has no canvas.')
    context.drawImage(image, 0, 0)
    return { canvas, context, width, height, data: context.getImageData(0, 0, width, height).data }
  }

  async function write(canvas: OffscreenCanvas, type: string): Promise<string> {
    const bytes = new Uint8Array(
      await (await canvas.convertToBlob({ type, quality: 1 })).arrayBuffer(),
    )
    return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
  }

  function meansOf({ width, height, data }: Awaited<ReturnType<typeof read>>): ImageData {
    const columns = Math.ceil(width / CELL)
    const means = new ImageData(columns, Math.ceil(height / CELL))
    const sums = new Float64Array(means.data.length)
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const from = (y * width + x) * 4
        const to = (Math.floor(y / CELL) * columns + Math.floor(x / CELL)) * 4
        for (let part = 0; part < 3; part++)
          sums[to + part] = (sums[to + part] ?? 0) + (data[from + part] ?? 0)
        sums[to + 3] = (sums[to + 3] ?? 0) + 1
      }
    }
    for (let at = 0; at < sums.length; at += 4) {
      for (let part = 0; part < 3; part++) {
        means.data[at + part] =
          Math.round((sums[at + part] ?? 0) / (sums[at + 3] ?? 1) / STEP) * STEP
      }
      means.data[at + 3] = 255
    }
    return means
  }

  const full = await read('image/png', shot)
  const means = meansOf(full)
  const canvas = new OffscreenCanvas(means.width, means.height)
  canvas.getContext('2d')?.putImageData(means, 0, 0)
  const before = stored === undefined ? means : await read('image/webp', stored)
  const size = `${means.width} × ${means.height}`
  const storedSize = `${before.width} × ${before.height}`
  const differs = (at: number) =>
    [0, 1, 2].some(
      (part) => Math.abs((means.data[at + part] ?? 0) - (before.data[at + part] ?? 0)) >= LEAST,
    )
  const changed: [number, number][] = []
  for (let cell = 0; size === storedSize && cell < means.width * means.height; cell++) {
    if (differs(cell * 4)) changed.push([cell % means.width, Math.floor(cell / means.width)])
  }
  full.context.strokeStyle = 'magenta'
  for (const [x, y] of changed) full.context.strokeRect(x * CELL, y * CELL, CELL, CELL)
  return {
    ...{ size, storedSize, changed },
    small: await write(canvas, 'image/webp'),
    marked: await write(full.canvas, 'image/png'),
  }
}
