// Sets the theme before the first paint. A separate file, because the content security policy forbids inline scripts.
;(() => {
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const apply = () => {
    let chosen = null
    try {
      chosen = localStorage.getItem('redrive-theme')
    } catch {
      // Storage is disabled: the theme of the system applies.
    }
    const isDark = chosen === 'dark' || (chosen !== 'light' && dark.matches)
    document.documentElement.dataset.theme = isDark ? 'dark' : 'light'
  }
  apply()
  dark.addEventListener('change', apply)
  addEventListener('storage', apply)
  addEventListener('redrive-theme', apply)
})()
