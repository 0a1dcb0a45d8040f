// The fonts of the system: a font that arrives late moves the text.
import theme from 'vitepress/theme-without-fonts'
import './style.css'

export default theme
