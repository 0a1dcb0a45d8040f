declare module '*.css'
/** The address of a worker that Vite builds. */
declare module '*?worker&url' {
  const url: string
  export default url
}
