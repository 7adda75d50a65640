//! Shows every part in its states, for those who change how things look. Served while developing (`make web-gallery`); no
//! part of the built client.

import { mount } from 'svelte';

import { Keep } from '../net/keep';
import '../styles/tokens.css';
import '../styles/base.css';
import '../styles/message.css';
import '../styles/forced.css';
import Gallery from './Gallery.svelte';

const target = document.getElementById('app');
if (!target) throw new Error('the page has no #app');
// Nothing is kept: what is tried here must not change the client next door.
mount(Gallery, { target, props: { keep: new Keep(undefined) } });
